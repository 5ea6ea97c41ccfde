/* The floor for any proxy: it carries bytes between two sockets, on epoll, in one thread, and reads none of
 * them. Arguments: its port, the broker's, both on 127.0.0.1. A connection of which one end closes is over. */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

enum { PIECE = 1 << 18, EVENTS = 64 };

/* One end of a connection. `rest`: bytes that it was given and could not take, up to `size`, sent up to `at`. */
struct end {
  struct end *other;
  char *rest;
  size_t at, size;
  int fd, over;
};

static char piece[PIECE];
static int poller;

static int checked(int result, const char *what) {
  if (result < 0) {
    perror(what);
    exit(1);
  }
  return result;
}

static struct sockaddr_in local(const char *port) {
  struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons((uint16_t)atoi(port))};
  at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return at;
}

/* An end is read while the other one can take bytes. */
static void watch(struct end *end, int operation) {
  struct epoll_event event = {.data.ptr = end};
  event.events = (end->rest ? EPOLLOUT : 0) | (end->other->rest ? 0 : EPOLLIN);
  checked(epoll_ctl(poller, operation, end->fd, &event), "epoll_ctl");
}

/* Gives the bytes that the socket took, -1 if the connection is over. */
static ssize_t sent(struct end *end, const char *data, size_t size) {
  ssize_t count = send(end->fd, data, size, MSG_DONTWAIT | MSG_NOSIGNAL);
  return count < 0 && errno == EAGAIN ? 0 : count;
}

static int carry(struct end *from) {
  struct end *to = from->other;
  ssize_t came = recv(from->fd, piece, PIECE, MSG_DONTWAIT);
  if (came <= 0) return came < 0 && errno == EAGAIN ? 0 : -1;
  ssize_t went = sent(to, piece, (size_t)came);
  if (went < 0 || went == came) return went < 0 ? -1 : 0;
  to->at = 0, to->size = (size_t)(came - went);
  to->rest = memcpy(malloc(to->size), piece + went, to->size);
  watch(to, EPOLL_CTL_MOD), watch(from, EPOLL_CTL_MOD);
  return 0;
}

static int flush(struct end *to) {
  ssize_t went = sent(to, to->rest + to->at, to->size - to->at);
  if (went < 0) return -1;
  if ((to->at += (size_t)went) < to->size) return 0;
  free(to->rest), to->rest = NULL;
  watch(to, EPOLL_CTL_MOD), watch(to->other, EPOLL_CTL_MOD);
  return 0;
}

static void begin(int listener, struct sockaddr_in *broker) {
  int one = 1, client = checked(accept(listener, NULL, NULL), "accept");
  int dialled = checked(socket(AF_INET, SOCK_STREAM, 0), "socket");
  checked(connect(dialled, (struct sockaddr *)broker, sizeof *broker), "connect");
  struct end *ends = calloc(2, sizeof *ends);
  ends[0] = (struct end){.other = &ends[1], .fd = client};
  ends[1] = (struct end){.other = &ends[0], .fd = dialled};
  for (int i = 0; i < 2; i++) {
    setsockopt(ends[i].fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    watch(&ends[i], EPOLL_CTL_ADD);
  }
}

/* Its memory stays: other events of the same round may name it, and a run has few connections. */
static void finish(struct end *end) {
  close(end->fd), close(end->other->fd);
  end->over = end->other->over = 1;
}

int main(int count, char **words) {
  if (count != 3) return fputs("usage: pump PORT BROKER_PORT\n", stderr), 2;
  struct sockaddr_in here = local(words[1]), broker = local(words[2]);
  int one = 1, listener = checked(socket(AF_INET, SOCK_STREAM, 0), "socket");
  setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
  checked(bind(listener, (struct sockaddr *)&here, sizeof here), "bind");
  checked(listen(listener, 64), "listen");
  poller = checked(epoll_create1(0), "epoll_create1");
  struct epoll_event events[EVENTS], event = {.events = EPOLLIN};
  checked(epoll_ctl(poller, EPOLL_CTL_ADD, listener, &event), "epoll_ctl");
  for (;;) {
    int ready = epoll_wait(poller, events, EVENTS, -1);
    for (int i = 0; i < ready; i++) {
      struct end *end = events[i].data.ptr;
      if (!end) begin(listener, &broker);
      else if (end->over) continue;
      else if ((events[i].events & EPOLLOUT) && flush(end) < 0) finish(end);
      else if (!end->over && (events[i].events & ~(uint32_t)EPOLLOUT) && !end->other->rest && carry(end) < 0) finish(end);
    }
  }
}
