import com.sun.net.httpserver.HttpServer;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.util.concurrent.Executors;

/** Sixteen threads, and one lock that each request holds for 10 ms: they might as well be one. */
class Lock {
    private static final Object LOCK = new Object();

    public static void main(String[] arguments) throws Exception {
        int port = Integer.parseInt(System.getenv("PORT"));
        var address = new InetSocketAddress(InetAddress.getLoopbackAddress(), port);
        // Else it sends head and body apart, and the second waits 40 ms for the first to be acknowledged.
        System.setProperty("sun.net.httpserver.nodelay", "true");
        HttpServer server = HttpServer.create(address, 512);
        server.setExecutor(Executors.newFixedThreadPool(16));
        server.createContext("/", exchange -> {
            byte[] body = "held\n".getBytes();
            synchronized (LOCK) {
                pause(10);
            }
            exchange.sendResponseHeaders(200, body.length);
            exchange.getResponseBody().write(body);
            exchange.close();
        });
        server.start();
    }

    private static void pause(long milliseconds) {
        try {
            Thread.sleep(milliseconds);
        } catch (InterruptedException stopped) {
            Thread.currentThread().interrupt();
        }
    }
}
