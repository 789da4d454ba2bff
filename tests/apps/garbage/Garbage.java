import com.sun.net.httpserver.HttpServer;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.util.Arrays;
import java.util.concurrent.Executors;

/** Four threads, each asleep for 10 ms in a request, that leave 60 kB of garbage: the heap is filled for minutes. */
class Garbage {
    private static volatile byte[] last;

    public static void main(String[] arguments) throws Exception {
        int port = Integer.parseInt(System.getenv("PORT"));
        var address = new InetSocketAddress(InetAddress.getLoopbackAddress(), port);
        // Else it sends head and body apart, and the second waits 40 ms for the first to be acknowledged.
        System.setProperty("sun.net.httpserver.nodelay", "true");
        HttpServer server = HttpServer.create(address, 512);
        server.setExecutor(Executors.newFixedThreadPool(4));
        server.createContext("/", exchange -> {
            byte[] garbage = new byte[60_000];
            Arrays.fill(garbage, (byte) 1);
            last = garbage;
            sleep(10);
            byte[] body = "done\n".getBytes();
            exchange.sendResponseHeaders(200, body.length);
            exchange.getResponseBody().write(body);
            exchange.close();
        });
        server.start();
    }

    private static void sleep(long milliseconds) {
        try {
            Thread.sleep(milliseconds);
        } catch (InterruptedException stopped) {
            Thread.currentThread().interrupt();
        }
    }
}
