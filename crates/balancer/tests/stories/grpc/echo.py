"""A gRPC server and a client that plays every kind of call against it, without generated code.

`echo.py serve` prints its port and serves until its input ends; `echo.py ask PORT` asserts.
"""

import sys
import threading
from concurrent import futures

import grpc

CHUNK = b"x" * (1 << 20)


def unary(request, context):
    context.send_initial_metadata((("first", "1"),))
    context.set_trailing_metadata((("last", "2"), ("in_all", "3"), ("sum-bin", b"\x00\xff")))
    return request


def fail(request, context):
    context.set_trailing_metadata((("why", "test"),))
    context.abort(grpc.StatusCode.FAILED_PRECONDITION, "not now, 100%")


def count(request, context):
    for number in range(int(request)):
        yield str(number).encode()


def collect(requests, context):
    return b"".join(requests)


def converse(requests, context):
    for request in requests:
        yield b"re: " + request


def serve():
    handlers = {
        "Unary": grpc.unary_unary_rpc_method_handler(unary),
        "Fail": grpc.unary_unary_rpc_method_handler(fail),
        "Count": grpc.unary_stream_rpc_method_handler(count),
        "Collect": grpc.stream_unary_rpc_method_handler(collect),
        "Converse": grpc.stream_stream_rpc_method_handler(converse),
    }
    server = grpc.server(futures.ThreadPoolExecutor(8))
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler("Echo", handlers),))
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    print(port, flush=True)
    sys.stdin.read()


def ask(port):
    options = (("grpc.max_receive_message_length", -1),)
    with grpc.insecure_channel(f"127.0.0.1:{port}", options=options) as channel:
        answer, call = channel.unary_unary("/Echo/Unary").with_call(b"hello", timeout=20)
        assert answer == b"hello", answer
        assert ("first", "1") in call.initial_metadata(), call.initial_metadata()
        last = {("last", "2"), ("in_all", "3"), ("sum-bin", b"\x00\xff")}
        assert last <= set(call.trailing_metadata())

        try:
            channel.unary_unary("/Echo/Fail")(b"", timeout=20)
            raise AssertionError("the call did not fail")
        except grpc.RpcError as error:
            assert error.code() is grpc.StatusCode.FAILED_PRECONDITION, error
            assert error.details() == "not now, 100%", error.details()
            assert ("why", "test") in error.trailing_metadata()

        try:
            channel.unary_unary("/Echo/Nothing")(b"", timeout=20)
            raise AssertionError("the call did not fail")
        except grpc.RpcError as error:
            assert error.code() is grpc.StatusCode.UNIMPLEMENTED, error

        numbers = list(channel.unary_stream("/Echo/Count")(b"100", timeout=20))
        assert numbers == [str(number).encode() for number in range(100)], numbers

        whole = channel.stream_unary("/Echo/Collect")(iter([CHUNK] * 3), timeout=20)
        assert whole == CHUNK * 3, len(whole)

        # Each message waits for the answer to the one before.
        turn = threading.Semaphore(1)
        call = channel.stream_stream("/Echo/Converse")(in_turn(turn), timeout=20)
        answers = []
        for answer in call:
            answers.append(answer)
            turn.release()
        assert answers == [b"re: %d" % number for number in range(5)], answers

        call = channel.stream_stream("/Echo/Converse")(in_turn(turn), timeout=20)
        call.cancel()
        assert call.code() is grpc.StatusCode.CANCELLED, call.code()


def in_turn(turn):
    for number in range(5):
        turn.acquire()
        yield b"%d" % number


if sys.argv[1] == "serve":
    serve()
else:
    ask(int(sys.argv[2]))
    print("done")
