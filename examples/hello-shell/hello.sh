#!/bin/sh
# A whole Lemon plugin in POSIX sh: the wire is one JSON message a line.
#
# It needs no JSON library, since the text of a call stays JSON on its way from the line that comes in to the line that
# goes out: nothing is ever unescaped. So a string below keeps its quotes: the method of a ping is '"ping"'.

LC_ALL=C # bytes in, bytes out
export LC_ALL

tools='[{"name":"shout","description":"Says a text in upper case.","inputSchema":{"type":"object","properties":{"text":{"type":"string"}},"required":["text"]}}]'
capabilities='{"tools":{},"experimental":{"dev.lemon/plugin":{"version":"1.0","multiSession":true}},"extensions":{"dev.lemon/plugin":{}}}'
about='{"name":"hello-shell","version":"1.0.0"}'

# Cuts the message $1 into tokens, one a line: strings, punctuation, numbers and words.
tokens() {
    printf '%s\n' "$1" | grep -oE '"([^"\\]|\\.)*"|[][{}:,]|[^][{}:,"[:space:]]+'
}

# Reads the message $1 and keeps, as JSON, the members that matter here.
parse() {
    id='' method='' versions='' name='' text=''
    message=$1 path='' key='' last=''
    set -- # from here on the stack: the paths of the objects and arrays around the current one
    while IFS= read -r token; do
        case $token in
        '{' | '[')
            set -- "$path" "$@"
            path=$path/$key
            key=''
            ;;
        '}' | ']')
            path=$1
            [ $# -eq 0 ] || shift
            ;;
        ':') key=$last ;;
        ',') key='' ;;
        *)
            last=$token # a value, or the key of what follows
            case $path/$key in
            '//"id"') id=$token ;;
            '//"method"') method=$token ;;
            '//"params"/"name"') name=$token ;;
            '//"params"/"arguments"/"text"') text=$token ;;
            */'"dev.lemon/plugin"/"versions"/') versions="$versions,$token" ;;
            esac
            ;;
        esac
    done <<TOKENS
$(tokens "$message")
TOKENS
}

# The JSON string $1 in upper case, all but its escapes; letters beyond ASCII stay as they are.
upper() {
    printf '%s\n' "$1" | sed '
        s/\\\\/\\u005c/g
        y/abcdefghijklmnopqrstuvwxyz/ABCDEFGHIJKLMNOPQRSTUVWXYZ/
        s/\\B/\\b/g; s/\\F/\\f/g; s/\\N/\\n/g; s/\\R/\\r/g; s/\\T/\\t/g; s/\\U/\\u/g'
}

result() {
    printf '{"jsonrpc":"2.0","id":%s,"result":%s}\n' "$id" "$1"
}

# error CODE MESSAGE [DATA]; message and data are JSON.
error() {
    printf '{"jsonrpc":"2.0","id":%s,"error":{"code":%s,"message":%s,"data":%s}}\n' "$id" "$1" "$2" "${3:-null}"
}

initialize() {
    case $versions in
    '') # an MCP client that has never heard of Lemon
        result "{\"protocolVersion\":\"2025-11-25\",\"capabilities\":{\"tools\":{}},\"serverInfo\":$about}"
        ;;
    *'"1.0"'*)
        result "{\"protocolVersion\":\"2025-11-25\",\"capabilities\":$capabilities,\"serverInfo\":$about}"
        ;;
    *)
        error 4012 '"this plugin speaks Lemon 1.0"' \
            "{\"kind\":\"unsupported_version\",\"supported\":[\"1.0\"],\"requested\":[${versions#,}]}"
        ;;
    esac
}

call() {
    case $name,$text in
    '"shout","'*) result "{\"content\":[{\"type\":\"text\",\"text\":$(upper "$text")}]}" ;;
    '"shout",'*) result '{"content":[{"type":"text","text":"text must be a string"}],"isError":true}' ;;
    *) error -32602 '"unknown tool"' ;;
    esac
}

while IFS= read -r line; do # ends at EOF, and the plugin with it
    parse "$line"
    case $id,$method in
    ,* | *,) ;; # a notification, or no request at all
    *,'"initialize"') initialize ;;
    *,'"ping"' | *,'"lemon/shutdown"') result '{}' ;;
    *,'"tools/list"') result "{\"tools\":$tools}" ;;
    *,'"tools/call"') call ;;
    *) error -32601 '"unknown method"' ;;
    esac
done
