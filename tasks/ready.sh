# Waits until something answers on a port of this machine: argv: port, and the path of a page that must be there, if any.
# Runs in the server's container, with what is there.
port=$1 page=$2
unset http_proxy HTTP_PROXY https_proxy HTTPS_PROXY all_proxy ALL_PROXY
has() { command -v "$1" >/dev/null 2>&1; }
answers() {
  if [ -n "$page" ]; then
    if has curl; then [ "$(curl -s -m 2 -o /dev/null -w '%{http_code}' "http://127.0.0.1:$port$page")" = 200 ]
    elif has wget; then wget -q -T 2 -O /dev/null "http://127.0.0.1:$port$page"
    else bash -c 'exec 3<>"/dev/tcp/127.0.0.1/$0" && printf "GET %s HTTP/1.0\r\nHost: 127.0.0.1\r\n\r\n" "$1" >&3 && read -r -t 2 line <&3 && case $line in *" 200"*) ;; *) exit 1 ;; esac' "$port" "$page"
    fi
  elif has nc; then nc -z -w 1 127.0.0.1 "$port"
  else bash -c 'exec 3<>"/dev/tcp/127.0.0.1/$0"' "$port"
  fi
}
if has python3; then exec python3 -I -c "$3" "$port" "$page"; fi
if ! has bash && { [ -n "$page" ] && ! has curl && ! has wget || [ -z "$page" ] && ! has nc; }; then exit 64; fi
until answers >/dev/null 2>&1; do sleep 0.1 2>/dev/null || sleep 1; done
