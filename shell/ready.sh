# Waits until something answers on a port of this machine: argv: port, and the path of a page that must be there, if any.
# Runs in the server's container, with what is there. A program that is there may still not work (a static wget crashes
# where it finds no library to look names up), so that the next one is tried, too.
port=$1 page=$2
unset http_proxy HTTP_PROXY https_proxy HTTPS_PROXY all_proxy ALL_PROXY
has() { command -v "$1" >/dev/null 2>&1; }
bounded() { if has timeout; then timeout 2 "$@"; else "$@"; fi; }
ok() { read -r _ code _ && [ "$code" = 200 ]; }
request() { printf 'GET %s HTTP/1.0\r\nHost: 127.0.0.1\r\n\r\n' "$page"; }
by_curl() { has curl && curl -s -m 2 -o /dev/null -w 'HTTP %{http_code} \n' "http://127.0.0.1:$port$page" | ok; }
by_wget() { has wget && wget -q -T 2 -O /dev/null "http://127.0.0.1:$port$page"; }
by_nc() { has nc && request | bounded nc -w 2 127.0.0.1 "$port" | ok; }
by_bash() { has bash && request | bounded bash -c 'exec 3<>"/dev/tcp/127.0.0.1/$0"; cat >&3; read -r line <&3; echo "$line"' "$port" | ok; }
listens() { grep -qi ": [0-9A-F]*:$(printf %04X "$port") [0-9A-F]*:0000 0A" /proc/net/tcp /proc/net/tcp6; }
answers() { if [ -n "$page" ]; then by_curl || by_wget || by_nc || by_bash; else listens; fi; }
if has python3; then exec python3 -I -c "$3" "$port" "$page"; fi
if [ -n "$page" ]; then has curl || has wget || has nc || has bash || exit 64; else has grep || exit 64; fi
until answers >/dev/null 2>&1; do sleep 0.1 2>/dev/null || sleep 1; done
