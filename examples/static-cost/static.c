/* One page to everybody: a web server of one thread that fits where no other does. `static PORT FILE [PASSES]`
   reads the page so often for each answer, as one does that makes it anew, and sends what comes out as its ETag.
   It listens on 127.0.0.1, or on the address in HOST. */

#define _GNU_SOURCE
#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

enum { PAGE = 16 << 10, EVENTS = 64, REQUEST = 4 << 10, CONNECTIONS = 4 << 10 };

static char answer[PAGE + 256], *page = answer;
static size_t answer_length;
static long passes = 1;

/* What of the end of a head, \r\n\r\n, each connection has sent so far: the head itself says nothing new. */
static unsigned char seen[CONNECTIONS];

static void fail(const char *what) {
    perror(what);
    exit(1);
}

static void load(const char *name) {
    static char content[PAGE];
    FILE *file = fopen(name, "r");
    if (!file) fail(name);
    size_t length = fread(content, 1, sizeof content, file);
    fclose(file);
    int head = snprintf(answer, sizeof answer,
        "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: %zu\r\nETag: \"00000000\"\r\n\r\n", length);
    page = memcpy(answer + head, content, length);
    answer_length = (size_t)head + length;
}

static int listen_on(int port) {
    int listener = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0), on = 1;
    const char *host = getenv("HOST");
    setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    struct sockaddr_in address = {
        .sin_family = AF_INET, .sin_port = htons((unsigned short)port), .sin_addr.s_addr = inet_addr(host ? host : "127.0.0.1")
    };
    if (bind(listener, (struct sockaddr *)&address, sizeof address) || listen(listener, 1024)) fail("listen");
    return listener;
}

static void welcome(int poll, int listener) {
    int client, on = 1;
    while ((client = accept4(listener, 0, 0, SOCK_NONBLOCK)) >= 0) {
        struct epoll_event event = { .events = EPOLLIN, .data.fd = client };
        setsockopt(client, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
        if (client >= CONNECTIONS || epoll_ctl(poll, EPOLL_CTL_ADD, client, &event)) close(client);
        else seen[client] = 0;
    }
}

/* FNV-1a, whose every step needs the one before: a pass costs what it costs. */
static void make(void) {
    unsigned sum = 2166136261u;
    for (long pass = 0; pass < passes; pass++) {
        for (const char *at = page; at < answer + answer_length; at++) sum = (sum ^ (unsigned char)*at) * 16777619u;
    }
    for (char *digit = page - 6; *digit != '"'; digit--, sum /= 16) *digit = "0123456789abcdef"[sum % 16];
}

/* Answers each head that has come to its end. The page fits into any socket's buffer; where it does not,
   the client has not read what came before, and is let go. */
static void serve(int client) {
    static const char end[] = "\r\n\r\n";
    char request[REQUEST];
    ssize_t length = read(client, request, sizeof request);
    for (ssize_t i = 0; i < length; i++) {
        if (request[i] == end[seen[client]]) seen[client]++;
        else seen[client] = request[i] == '\r';
        if (seen[client] < 4) continue;
        seen[client] = 0;
        make();
        if (write(client, answer, answer_length) != (ssize_t)answer_length) length = 0;
    }
    if (length <= 0) close(client);
}

int main(int count, char **arguments) {
    if (count < 3 || count > 4) return fprintf(stderr, "usage: static PORT FILE [PASSES]\n"), 2;
    load(arguments[2]);
    if (count == 4) passes = atol(arguments[3]);
    int listener = listen_on(atoi(arguments[1])), poll = epoll_create1(0);
    struct epoll_event event = { .events = EPOLLIN, .data.fd = listener }, events[EVENTS];
    if (poll < 0 || epoll_ctl(poll, EPOLL_CTL_ADD, listener, &event)) fail("epoll");
    for (;;) {
        int ready = epoll_wait(poll, events, EVENTS, -1);
        for (int i = 0; i < ready; i++) {
            if (events[i].data.fd == listener) welcome(poll, listener);
            else serve(events[i].data.fd);
        }
    }
}
