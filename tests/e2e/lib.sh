# Sourced by end-to-end tests. Each test is a small bash program on standard input, run in
# an empty folder with -e, -u and pipefail:
#
#   test_that "what holds" <<'EOF'
#   dpflow load digits:train | dpflow inspect
#   EOF
#
# Each has an owner's key of its own ($DPFLOW_OWNER_KEY), in that folder.
#
# `skip WHY` ends a test that cannot run here; `fails STATUS PATTERN COMMAND...` wants a
# failure with that exit status and one line on standard error that matches PATTERN.

suite=$(basename "$0" .test)
test_helpers=$(cat <<'HELPERS'
skip() { echo "SKIP $*" >&3; exit 77; }
fails() {
    local want=$1 pattern=$2 got=0
    shift 2
    "$@" >out.txt 2>err.txt || got=$?
    if [ "$got" -ne "$want" ]; then
        echo "exit status $got instead of $want: $*"; cat err.txt; return 1
    fi
    if ! grep -Eq -- "$pattern" err.txt; then
        echo "no line matches '$pattern':"; cat err.txt; return 1
    fi
    if [ "$(grep -vc '^ ' err.txt)" -ne 1 ]; then
        echo "more than one line:"; cat err.txt; return 1
    fi
}
# `! command` in the middle of a script does not count for bash -e: this does.
not() { if "$@"; then echo "this should have failed: $*"; return 1; fi; }
says() { grep -Eq -- "$1" "$2" || { echo "'$2' lacks '$1':"; cat "$2"; return 1; }; }
# Bytes of a file changed in place by a perl expression on $_.
mangle() { perl -0777 -pi -e "$2" "$1"; }
# A TCP port that nobody uses, and the one after it: below those that the system hands out.
free_port() {
    perl -MIO::Socket::INET -e 'for (1 .. 100) {
        my $port = 20000 + int rand 12000;
        my @free = map { IO::Socket::INET->new(LocalAddr => "127.0.0.1", LocalPort => $_, Listen => 1) } $port, $port + 1;
        if ($free[0] && $free[1]) { print $port; exit }
    } die "no free port\n"'
}
wait_for() { # wait_for SECONDS COMMAND...
    local tries=$(($1 * 20)); shift
    until "$@" >/dev/null 2>&1; do
        tries=$((tries - 1)); [ $tries -gt 0 ] || return 1
        sleep 0.05
    done
}
HELPERS
)

test_that() {
    local name=$1 dir status=0 text
    dir=$(mktemp -d)
    { echo "$test_helpers"; cat; } > "$dir/.test"
    (cd "$dir" && export DPFLOW_OWNER_KEY="$dir/.owner.key" && exec timeout 120 bash -eu -o pipefail .test 3>.skip >.out 2>&1) || status=$?
    if [ "$status" -eq 77 ]; then
        echo "skip $suite: $name ($(sed 's/^SKIP //' "$dir/.skip"))"
    elif [ "$status" -eq 0 ]; then
        echo "ok $suite: $name"
    else
        echo "not ok $suite: $name (status $status)"
        tail -15 "$dir/.out" | sed 's/^/    /'
    fi
    rm -rf "$dir"
}
