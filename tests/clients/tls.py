"""Stands before a server and does TLS for it: `tls.py CERTIFICATE KEY HOST PORT` prints the port that it listens on."""

import socket
import ssl
import sys
import threading


def pump(source, sink):
    try:
        while data := source.recv(65536):
            sink.sendall(data)
        sink.shutdown(socket.SHUT_WR)
    except OSError:
        pass


def serve(accepted, context, address):
    try:
        near = context.wrap_socket(accepted, server_side=True)
    except OSError:
        return
    far = socket.create_connection(address)
    threading.Thread(target=pump, args=(far, near), daemon=True).start()
    pump(near, far)


def main():
    certificate, key, host, port = sys.argv[1:]
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    listener = socket.create_server(("127.0.0.1", 0))
    print(listener.getsockname()[1], flush=True)
    while True:
        accepted, _ = listener.accept()
        threading.Thread(target=serve, args=(accepted, context, (host, int(port))), daemon=True).start()


main()
