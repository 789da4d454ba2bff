import com.sun.net.httpserver.HttpExchange;
import com.sun.net.httpserver.HttpServer;
import java.io.IOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.nio.charset.StandardCharsets;
import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Statement;
import java.util.concurrent.ArrayBlockingQueue;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.Executors;

/**
 * A multi-threaded API: {@code /api} answers the host's name, {@code /products} all products of a
 * PostgreSQL database. PORT is the port; PGHOST, PGPORT, PGUSER and PGDATABASE say where the database is.
 */
class Threads {
    private static final int THREADS = 64;
    private static final int CONNECTIONS = 16;
    private static final BlockingQueue<Connection> POOL = new ArrayBlockingQueue<>(CONNECTIONS);

    public static void main(String[] arguments) throws Exception {
        String url = "jdbc:postgresql://%s:%s/%s".formatted(
                setting("PGHOST"), setting("PGPORT"), setting("PGDATABASE"));
        for (int i = 0; i < CONNECTIONS; i++) {
            POOL.add(DriverManager.getConnection(url, setting("PGUSER"), ""));
        }
        String host = InetAddress.getLocalHost().getHostName();
        int port = Integer.parseInt(setting("PORT"));
        var address = new InetSocketAddress(System.getenv().getOrDefault("HOST", "127.0.0.1"), port);
        // Else it sends head and body apart, and the second waits 40 ms for the first to be acknowledged.
        System.setProperty("sun.net.httpserver.nodelay", "true");
        HttpServer server = HttpServer.create(address, 512);
        server.setExecutor(Executors.newFixedThreadPool(THREADS));
        server.createContext("/api", exchange -> answer(exchange, 200, "{\"host\": \"" + host + "\"}"));
        server.createContext("/products", Threads::products);
        server.start();
    }

    private static void products(HttpExchange exchange) throws IOException {
        try {
            answer(exchange, 200, allProducts());
        } catch (SQLException | InterruptedException error) {
            answer(exchange, 500, "{\"error\": \"no database\"}");
        }
    }

    private static String allProducts() throws SQLException, InterruptedException {
        Connection connection = POOL.take();
        try (Statement statement = connection.createStatement();
                ResultSet rows = statement.executeQuery("SELECT id, name, price_cents FROM product")) {
            var json = new StringBuilder("[");
            while (rows.next()) {
                json.append(json.length() > 1 ? ", " : "")
                        .append("{\"id\": ").append(rows.getInt(1))
                        .append(", \"name\": \"").append(rows.getString(2))
                        .append("\", \"price_cents\": ").append(rows.getInt(3)).append('}');
            }
            return json.append("]\n").toString();
        } finally {
            POOL.add(connection);
        }
    }

    private static void answer(HttpExchange exchange, int status, String json) throws IOException {
        byte[] body = json.getBytes(StandardCharsets.UTF_8);
        exchange.getResponseHeaders().set("Content-Type", "application/json");
        exchange.sendResponseHeaders(status, body.length);
        exchange.getResponseBody().write(body);
        exchange.close();
    }

    private static String setting(String name) {
        String value = System.getenv(name);
        if (value == null) {
            System.err.println("threads: " + name + " is not set: start this with database.py");
            System.exit(1);
        }
        return value;
    }
}
