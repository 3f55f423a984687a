/* Shell completion: a script that asks the stages themselves, so it cannot go stale. */
#ifndef DPF_PIPELINE_COMPLETION_H
#define DPF_PIPELINE_COMPLETION_H

/* Print the script for "bash" or "zsh"; the exit status of the front-end. */
int dpf_completion_print(const char *shell);

#endif
