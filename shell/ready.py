# Does what ready.sh does, where there is a Python.
import http.client, socket, sys, time

port, page = int(sys.argv[1]), sys.argv[2]
while True:
    try:
        if not page:
            socket.create_connection(("127.0.0.1", port), 1).close()
            break
        c = http.client.HTTPConnection("127.0.0.1", port, timeout=2)
        c.request("GET", page)
        if c.getresponse().status == 200:
            break
    except (OSError, http.client.HTTPException):
        pass
    time.sleep(0.1)
