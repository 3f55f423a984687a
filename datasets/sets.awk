# datasets/sets.list as rows of C, for lib/data/stored.c (see lib/data/sets.h).
function end_set() {
    if (name == "")
        return
    symbol = name
    gsub(/[^a-z0-9]/, "_", symbol)
    printf "static const struct dpf_set_file files_%s[] = {\n%s", symbol, files
    printf "    {NULL, NULL, 0, NULL},\n};\n"
    printf "const struct dpf_data_set dpf_set_%s = {\n%s", symbol, row
    printf "    .from = \"datasets/fetch\",\n    .takes = DPF_TAKES(\"data-dir\", \"partial\"),\n"
    printf "    .files = files_%s,\n};\n", symbol
    name = ""
}
function rest(    text) {
    text = $0
    sub(/^[a-z]+ +/, "", text)
    return text
}
/^#/ || NF == 0 || $1 == "about" || $1 == "from" || $1 == "archive" { next }
$1 == "set" { end_set(); name = $2; files = row = ""; next }
$1 == "records" { row = row "    .train = " $2 ",\n    .test = " $3 ",\n"; next }
$1 == "classes" { row = row "    .classes = " $2 ",\n"; next }
$1 == "fields" || $1 == "format" || $1 == "pieces" {
    row = row "    ." $1 " = \"" rest() "\",\n"
    next
}
($1 == "train" || $1 == "test") && NF == 4 {
    file = $4
    sub(/\.(gz|xz)$/, "", file)
    files = files "    {\"" file "\", \"" $1 "\", '" $2 "',\n     \"" $3 "\"},\n"
    next
}
{ print FILENAME ":" FNR ": not understood: " $0 > "/dev/stderr"; exit 1 }
END { end_set() }
