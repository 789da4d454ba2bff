import io.javalin.Javalin;
import java.util.Comparator;
import java.util.List;
import java.util.Map;
import java.util.stream.Collectors;
import java.util.stream.IntStream;

/** A library's catalogue: filters, groups and sorts, and answers in Jackson's JSON. */
public class Library {
    public record Book(int id, String title, String shelf, int year, List<String> authors) {}

    public record Shelf(String name, int books, List<Book> newest) {}

    static final List<Book> BOOKS = IntStream.range(0, 1500)
            .mapToObj(i -> new Book(
                    i, "Volume " + i, "shelf " + i % 12, 1950 + i * 31 % 75, List.of("author " + i % 97, "author " + i % 89)))
            .toList();

    static List<Shelf> since(int year) {
        Map<String, List<Book>> shelves =
                BOOKS.stream().filter(book -> book.year >= year).collect(Collectors.groupingBy(Book::shelf));
        return shelves.entrySet().stream()
                .map(shelf -> new Shelf(shelf.getKey(), shelf.getValue().size(), newest(shelf.getValue())))
                .sorted(Comparator.comparing(Shelf::name))
                .toList();
    }

    static List<Book> newest(List<Book> books) {
        return books.stream().sorted(Comparator.comparingInt(Book::year).reversed()).limit(8).toList();
    }

    public static void main(String[] arguments) {
        Javalin app = Javalin.create(config -> config.showJavalinBanner = false);
        app.get("/shelves", context ->
                context.json(since(context.queryParamAsClass("since", Integer.class).getOrDefault(1990))));
        app.start("127.0.0.1", Integer.parseInt(System.getenv("PORT")));
    }
}
