import com.sun.net.httpserver.HttpExchange;
import com.sun.net.httpserver.HttpServer;
import java.io.IOException;
import java.net.InetSocketAddress;
import java.nio.charset.StandardCharsets;
import java.util.Comparator;
import java.util.List;
import java.util.concurrent.Executors;
import java.util.stream.Collectors;
import java.util.stream.IntStream;

/** Free rooms of a hotel: asks the house, then sorts and formats. Eight threads of the JDK's own server. */
public class Rooms {
    record Room(int number, int floor, int cents, String view) {}

    static final List<Room> ROOMS = IntStream.range(0, 600)
            .mapToObj(i -> new Room(100 + i, i / 40, 4900 + i * 7919 % 20000, i % 3 == 0 ? "sea" : "yard"))
            .toList();

    static List<Room> free(int night) throws InterruptedException {
        Thread.sleep(20); // a call over the network
        return ROOMS.stream().filter(room -> (room.number * 31 + night) % 4 != 0).toList();
    }

    static void answer(HttpExchange exchange) throws IOException {
        try (exchange) {
            String query = exchange.getRequestURI().getQuery();
            int night = query == null ? 1 : Integer.parseInt(query.replaceAll("\\D", ""));
            String rooms = free(night).stream()
                    .sorted(Comparator.comparingInt(Room::cents).thenComparing(Room::view))
                    .limit(50)
                    .map(room -> String.format(
                            "{\"number\":%d,\"floor\":%d,\"price\":\"%.2f\",\"view\":\"%s\"}",
                            room.number, room.floor, room.cents / 100.0, room.view))
                    .collect(Collectors.joining(",", "[", "]\n"));
            byte[] body = rooms.getBytes(StandardCharsets.UTF_8);
            exchange.getResponseHeaders().set("Content-Type", "application/json");
            exchange.sendResponseHeaders(200, body.length);
            exchange.getResponseBody().write(body);
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
    }

    public static void main(String[] arguments) throws IOException {
        int port = Integer.parseInt(System.getenv("PORT"));
        HttpServer server = HttpServer.create(new InetSocketAddress("127.0.0.1", port), 512);
        server.createContext("/", Rooms::answer);
        server.setExecutor(Executors.newFixedThreadPool(8));
        server.start();
    }
}
