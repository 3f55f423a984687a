#include "pipeline/completion.h"

#include <stdio.h>
#include <string.h>

#include "base/status.h"
#include "pipeline/stages.h"

#include "base/banned.h"

static const char body[] =
    "_dpflow()\n"
    "{\n"
    "    local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD-1]}\n"
    "    local stage=${COMP_WORDS[1]} name kind choices\n"
    "    COMPREPLY=()\n"
    "    if [ \"$COMP_CWORD\" -eq 1 ]; then\n"
    "        COMPREPLY=($(compgen -W \"$_dpflow_stages help completion\" -- \"$word\"))\n"
    "        return\n"
    "    fi\n"
    "    if [ \"$stage\" = help ]; then\n"
    "        COMPREPLY=($(compgen -W \"$_dpflow_stages\" -- \"$word\"))\n"
    "        return\n"
    "    fi\n"
    "    if [ \"$stage\" = completion ]; then\n"
    "        COMPREPLY=($(compgen -W \"bash zsh\" -- \"$word\"))\n"
    "        return\n"
    "    fi\n"
    "    while IFS=$'\\t' read -r name kind choices; do\n"
    "        if [ \"$name\" = \"$before\" ] && [ \"$kind\" = choice ]; then\n"
    "            COMPREPLY=($(compgen -W \"$choices\" -- \"$word\"))\n"
    "            return\n"
    "        fi\n"
    "        if [ \"$name\" = \"$before\" ] && [ \"$kind\" != flag ]; then\n"
    "            COMPREPLY=($(compgen -f -- \"$word\"))\n"
    "            return\n"
    "        fi\n"
    "        case $name in \"$word\"*) COMPREPLY+=(\"$name\") ;; esac\n"
    "    done < <(\"${COMP_WORDS[0]}\" \"$stage\" --dump-completion 2>/dev/null)\n"
    "    case $word in\n"
    "    -*) ;;\n"
    "    *) COMPREPLY+=($(compgen -f -- \"$word\")) ;;\n"
    "    esac\n"
    "}\n"
    "complete -o default -F _dpflow dpflow\n";

int dpf_completion_print(const char *shell)
{
    bool zsh = strcmp(shell, "zsh") == 0;
    if (!zsh && strcmp(shell, "bash") != 0) {
        fprintf(stderr, "dpflow: completion is for 'bash' or 'zsh', not '%s'\n", shell);
        return DPF_USAGE;
    }
    printf("# dpflow completion: eval \"$(dpflow completion %s)\"\n", shell);
    if (zsh)
        printf("autoload -U +X bashcompinit && bashcompinit\n");
    printf("_dpflow_stages=\"");
    for (const struct dpf_stage_entry *s = dpf_stage_entries; s->name; s++)
        printf("%s%s", s == dpf_stage_entries ? "" : " ", s->name);
    printf("\"\n%s", body);
    return DPF_OK;
}
