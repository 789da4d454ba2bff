import com.sun.net.httpserver.HttpServer;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.util.concurrent.Executors;
import java.util.concurrent.Semaphore;

/** Any number of threads, and a pool of five connections to something that answers in 40 ms. */
class Pool {
    private static final Semaphore CONNECTIONS = new Semaphore(5, true);

    public static void main(String[] arguments) throws Exception {
        int port = Integer.parseInt(System.getenv("PORT"));
        var address = new InetSocketAddress(InetAddress.getLoopbackAddress(), port);
        // Else it sends head and body apart, and the second waits 40 ms for the first to be acknowledged.
        System.setProperty("sun.net.httpserver.nodelay", "true");
        HttpServer server = HttpServer.create(address, 512);
        server.setExecutor(Executors.newCachedThreadPool());
        server.createContext("/", exchange -> {
            byte[] body = "asked\n".getBytes();
            ask(40);
            exchange.sendResponseHeaders(200, body.length);
            exchange.getResponseBody().write(body);
            exchange.close();
        });
        server.start();
    }

    private static void ask(long milliseconds) {
        CONNECTIONS.acquireUninterruptibly();
        try {
            Thread.sleep(milliseconds);
        } catch (InterruptedException stopped) {
            Thread.currentThread().interrupt();
        } finally {
            CONNECTIONS.release();
        }
    }
}
