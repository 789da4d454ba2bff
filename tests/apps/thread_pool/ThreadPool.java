import com.sun.net.httpserver.HttpServer;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.concurrent.Executors;

/** Eight threads. A request sleeps for 20 ms and renders a report, at first in code that is not compiled yet. */
class ThreadPool {
    private static final int THREADS = 8;
    private static final int LINES = 2500;

    public static void main(String[] arguments) throws Exception {
        int port = Integer.parseInt(System.getenv("PORT"));
        var address = new InetSocketAddress(InetAddress.getLoopbackAddress(), port);
        // Else it sends head and body apart, and the second waits 40 ms for the first to be acknowledged.
        System.setProperty("sun.net.httpserver.nodelay", "true");
        HttpServer server = HttpServer.create(address, 512);
        server.setExecutor(Executors.newFixedThreadPool(THREADS));
        server.createContext("/", exchange -> {
            sleep(20);
            byte[] body = report().getBytes();
            exchange.sendResponseHeaders(200, body.length);
            exchange.getResponseBody().write(body);
            exchange.close();
        });
        server.start();
    }

    private static String report() {
        List<String> lines = new ArrayList<>(LINES);
        for (int line = 0; line < LINES; line++) {
            long amount = line * 2654435761L % 100_000;
            lines.add("customer-" + amount % 977 + ";" + amount / 100.0 + ";" + line);
        }
        Collections.sort(lines);
        StringBuilder report = new StringBuilder();
        for (String line : lines.subList(0, 20)) {
            report.append(String.join("\t", line.split(";"))).append('\n');
        }
        return report.toString();
    }

    private static void sleep(long milliseconds) {
        try {
            Thread.sleep(milliseconds);
        } catch (InterruptedException stopped) {
            Thread.currentThread().interrupt();
        }
    }
}
