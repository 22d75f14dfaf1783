/* replay: sends the frames of a capture on an interface, as fast as one core can or at a rate.
 *
 * The capture (a classic little-endian pcap file of Ethernet frames) lies in memory once. With AF_XDP in copy
 * mode, the fastest way onto a veth pair, that memory is the one the kernel sends from, so that sending a frame
 * costs this program a descriptor and nothing else. Where AF_XDP is not to be had it is sendmmsg() on a packet
 * socket.
 *
 *     cc -O3 -march=native -o replay replay.c
 *     ./replay IFACE FILE.pcap [--loops N] [--seconds S] [--rate PPS] [--core N] [--mode xdp|mmsg] [--same]
 *
 *   --loops N    the capture so many times (default 1; 0: until the seconds are over)
 *   --seconds S  stop after so many seconds
 *   --rate PPS   packets per second, evenly spread over a burst at a time (default: as fast as it goes)
 *   --same       every loop is the same bytes; without it the number of the loop is added to the second and third
 *                byte of the client's IPv4 address, so that each loop has connections and transactions of its own.
 *                The client is the side with the higher port. Checksums are mended (RFC 1624).
 *
 * Prints one line of key=value. `sent` is what the interface took: frames whose sending the kernel has completed,
 * less those that the interface dropped; `link` is what the interface itself counts, and where the two differ the
 * exit code is 1. A frame that was only handed to a ring counts nowhere.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <linux/if_xdp.h>
#include <net/if.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum {
    FILE_HEADER = 24,
    RECORD_HEADER = 16,
    RING = 2048,  /* descriptors of the transmit and of the completion ring */
    BATCH = 32,   /* what the kernel takes from an AF_XDP ring in one call */
    MAX_FRAME = 3498, /* AF_XDP copies a frame into one buffer of at most a page, less its own part */
    CHUNK = 4096
};

static volatile sig_atomic_t asked_to_stop;
static void stop(int signal) { (void)signal; asked_to_stop = 1; }

static void fail(const char *what)
{
    fprintf(stderr, "replay: %s: %s\n", what, strerror(errno));
    exit(3);
}
static void refuse(const char *what)
{
    fprintf(stderr, "replay: %s\n", what);
    exit(2);
}

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}
static double cpu(void)
{
    struct rusage r;
    getrusage(RUSAGE_SELF, &r);
    return (double)(r.ru_utime.tv_sec + r.ru_stime.tv_sec) + 1e-6 * (double)(r.ru_utime.tv_usec + r.ru_stime.tv_usec);
}
static uint32_t u32(const uint8_t *p) { uint32_t v; memcpy(&v, p, sizeof v); return v; }

/* ---- the capture ---------------------------------------------------------------------------------- */

struct frame {
    uint64_t offset; /* in `memory` */
    uint32_t length;
    uint32_t client; /* offset of the client's IPv4 address in the frame; 0: none */
    uint32_t tcp;    /* offset of the TCP checksum in the frame; 0: none */
};
static uint8_t *memory;
static uint64_t memory_size;
static struct frame *frames;
static uint64_t frame_count;

static void find_client(struct frame *f)
{
    const uint8_t *p = memory + f->offset;
    uint32_t at = 14;
    if (f->length < 14 + 40) return;
    if (p[12] == 0x81 && p[13] == 0x00) at = 18;
    if (p[at - 2] != 0x08 || p[at - 1] != 0x00 || p[at + 9] != 6) return;
    uint32_t tcp = at + (p[at] & 15u) * 4u;
    if (tcp + 18 > f->length) return;
    unsigned src = p[tcp] << 8 | p[tcp + 1], dst = p[tcp + 2] << 8 | p[tcp + 3];
    f->client = at + (src > dst ? 12 : 16);
    f->tcp = tcp + 16;
}

static void load(const char *path)
{
    int fd = open(path, O_RDONLY);
    struct stat st;
    if (fd < 0 || fstat(fd, &st)) fail(path);
    size_t size = (size_t)st.st_size;
    uint8_t *file = mmap(NULL, size, PROT_READ, MAP_PRIVATE, fd, 0);
    if (file == MAP_FAILED) fail("mmap of the capture");
    if (size < FILE_HEADER || (u32(file) != 0xa1b2c3d4 && u32(file) != 0xa1b23c4d) || u32(file + 20) != 1)
        refuse("not a classic little-endian pcap file of Ethernet frames");
    for (size_t at = FILE_HEADER; at + RECORD_HEADER <= size; at += RECORD_HEADER + u32(file + at + 8)) frame_count++;
    memory_size = (size + CHUNK) / CHUNK * CHUNK;
    memory = mmap(NULL, memory_size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
    frames = calloc(frame_count + 1, sizeof *frames);
    if (memory == MAP_FAILED || !frames) fail("memory for the capture");
    uint64_t used = 0, count = 0;
    for (size_t at = FILE_HEADER; at + RECORD_HEADER <= size;) {
        uint32_t captured = u32(file + at + 8), length = u32(file + at + 12);
        if (captured > size - at - RECORD_HEADER) break;
        if (captured < 14 || captured > MAX_FRAME || captured != length)
            refuse("a frame that is cut, or too short or too long to be sent");
        memcpy(memory + used, file + at + RECORD_HEADER, captured);
        frames[count] = (struct frame){.offset = used, .length = captured};
        find_client(&frames[count++]);
        used += captured;
        at += RECORD_HEADER + captured;
    }
    frame_count = count;
    if (!count) refuse("a capture without packets");
    munmap(file, size);
    close(fd);
}

/* The checksum at p where a 16-bit word of what it covers changes. */
static void mend(uint8_t *p, uint16_t old, uint16_t new)
{
    uint32_t sum = (uint16_t) ~(p[0] << 8 | p[1]) + (uint16_t)~old + new;
    sum = (sum & 0xffff) + (sum >> 16);
    sum = ~(sum + (sum >> 16)) & 0xffff;
    p[0] = (uint8_t)(sum >> 8);
    p[1] = (uint8_t)sum;
}

/* Makes the frame one of the next loop. */
static inline void step(const struct frame *f)
{
    if (!f->client) return;
    uint8_t *p = memory + f->offset, *address = p + f->client;
    uint16_t high = (uint16_t)(address[0] << 8 | address[1]), low = (uint16_t)(address[2] << 8 | address[3]);
    uint16_t number = (uint16_t)((address[1] << 8 | address[2]) + 1);
    address[1] = (uint8_t)(number >> 8);
    address[2] = (uint8_t)number;
    uint16_t new_high = (uint16_t)(address[0] << 8 | address[1]), new_low = (uint16_t)(address[2] << 8 | address[3]);
    uint8_t *header = p + (p[12] == 0x81 ? 18 : 14);
    mend(header + 10, high, new_high);
    mend(header + 10, low, new_low);
    mend(p + f->tcp, high, new_high);
    mend(p + f->tcp, low, new_low);
}

/* ---- the interface's own counters ------------------------------------------------------------------ */

struct link { uint64_t packets, dropped; };

static struct link link_counters(const char *interface)
{
    struct link link = {0, 0};
    FILE *file = fopen("/proc/thread-self/net/dev", "r");
    char line[512];
    if (!file) fail("/proc/thread-self/net/dev");
    while (fgets(line, sizeof line, file)) {
        char *name = line + strspn(line, " "), *colon = strchr(name, ':');
        if (!colon) continue;
        *colon = 0;
        if (strcmp(name, interface)) continue;
        unsigned long long v[16] = {0};
        char *rest = colon + 1;
        for (int i = 0; i < 16; i++) v[i] = strtoull(rest, &rest, 10);
        link = (struct link){.packets = v[9], .dropped = v[11]};
    }
    fclose(file);
    return link;
}

/* ---- what is to be done ---------------------------------------------------------------------------- */

static struct {
    const char *interface;
    uint64_t loops; /* 0: no end */
    double seconds, rate;
    int is_same;
} plan;

static struct {
    uint64_t next;      /* frame that is sent next */
    uint64_t loop;
    uint64_t handed;    /* frames handed to the kernel */
    uint64_t completed; /* frames that the kernel is done with */
    uint64_t bytes;     /* of those handed */
    double begin;
} run;

/* How many frames may be handed over now, at most `most`; 0 with *over set at the end. */
static uint64_t due(uint64_t most, int *over)
{
    double elapsed = 0;
    if (plan.seconds > 0 || plan.rate > 0) elapsed = now() - run.begin;
    if (asked_to_stop || (plan.loops && run.loop >= plan.loops) || (plan.seconds > 0 && elapsed >= plan.seconds)) {
        *over = 1;
        return 0;
    }
    if (plan.rate > 0) {
        double due = elapsed * plan.rate - (double)run.handed;
        if (due < 1) return 0;
        if (due < (double)most) most = (uint64_t)due;
    }
    uint64_t left = frame_count - run.next; /* a batch does not cross the end of the capture */
    return most < left ? most : left;
}

static const struct frame *take(void)
{
    const struct frame *f = &frames[run.next++];
    if (run.next + 8 < frame_count) __builtin_prefetch(memory + frames[run.next + 8].offset, 1);
    if (run.loop && !plan.is_same) step(f);
    if (run.next == frame_count) {
        run.next = 0;
        run.loop++;
    }
    run.bytes += f->length;
    run.handed++;
    return f;
}

/* ---- AF_XDP ---------------------------------------------------------------------------------------- */

struct ring { uint32_t *producer, *consumer; void *entries; };

static struct ring map_ring(int fd, struct xdp_ring_offset at, uint64_t page, size_t entry)
{
    uint8_t *p = mmap(NULL, at.desc + RING * entry, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, fd, (off_t)page);
    if (p == MAP_FAILED) fail("mmap of a ring");
    return (struct ring){(void *)(p + at.producer), (void *)(p + at.consumer), p + at.desc};
}

/* A socket bound to the interface, or -1 with errno. */
static int open_xdp(struct ring *tx, struct ring *done)
{
    int fd = socket(AF_XDP, SOCK_RAW | SOCK_CLOEXEC, 0), size = RING;
    if (fd < 0) return -1;
    struct xdp_umem_reg memory_of = {.addr = (uint64_t)memory, .len = memory_size, .chunk_size = CHUNK,
                                     .flags = XDP_UMEM_UNALIGNED_CHUNK_FLAG};
    struct xdp_mmap_offsets at;
    socklen_t length = sizeof at;
    struct sockaddr_xdp to = {.sxdp_family = AF_XDP, .sxdp_flags = XDP_COPY,
                              .sxdp_ifindex = if_nametoindex(plan.interface)};
    if (setsockopt(fd, SOL_XDP, XDP_UMEM_REG, &memory_of, sizeof memory_of) ||
        setsockopt(fd, SOL_XDP, XDP_UMEM_FILL_RING, &size, sizeof size) ||
        setsockopt(fd, SOL_XDP, XDP_UMEM_COMPLETION_RING, &size, sizeof size) ||
        setsockopt(fd, SOL_XDP, XDP_TX_RING, &size, sizeof size) ||
        getsockopt(fd, SOL_XDP, XDP_MMAP_OFFSETS, &at, &length)) {
        int why = errno;
        close(fd);
        errno = why;
        return -1;
    }
    *done = map_ring(fd, at.cr, XDP_UMEM_PGOFF_COMPLETION_RING, sizeof(uint64_t));
    *tx = map_ring(fd, at.tx, XDP_PGOFF_TX_RING, sizeof(struct xdp_desc));
    /* A queue that was closed a moment ago is still busy. */
    for (int attempt = 0; bind(fd, (void *)&to, sizeof to); attempt++) {
        if (errno != EBUSY || attempt == 100) {
            int why = errno;
            close(fd);
            errno = why;
            return -1;
        }
        usleep(10000);
    }
    return fd;
}

static void send_xdp(int fd, struct ring tx, struct ring done)
{
    struct xdp_desc *descriptors = tx.entries;
    uint32_t producer = 0, seen = 0;
    /* A frame is not changed for its next loop before it has left. */
    uint64_t most_in_flight = frame_count < RING ? frame_count : RING;
    double quiet_since = 0;
    for (int over = 0;;) {
        uint32_t finished = __atomic_load_n(done.producer, __ATOMIC_ACQUIRE);
        run.completed += finished - seen;
        if (finished != seen) quiet_since = 0;
        seen = finished;
        __atomic_store_n(done.consumer, seen, __ATOMIC_RELEASE);
        uint64_t in_flight = run.handed - run.completed, room = most_in_flight - in_flight;
        uint64_t count = room && !over ? due(room < BATCH ? room : BATCH, &over) : 0;
        for (uint64_t i = 0; i < count; i++) {
            const struct frame *f = take();
            descriptors[producer++ % RING] = (struct xdp_desc){.addr = f->offset, .len = f->length};
        }
        __atomic_store_n(tx.producer, producer, __ATOMIC_RELEASE);
        in_flight += count;
        if (over && !in_flight) return;
        if (!in_flight) continue;
        /* EAGAIN: the budget of a call is used up, and the rest stays in the ring. EBUSY, ENOBUFS: the interface. */
        if (sendto(fd, NULL, 0, MSG_DONTWAIT, NULL, 0) < 0 && errno != EAGAIN && errno != EBUSY && errno != ENOBUFS)
            fail("send");
        if (!over) continue;
        /* What does not come back within a second never will (a frame that the kernel refuses). */
        if (!quiet_since) quiet_since = now();
        if (now() - quiet_since > 1) return;
    }
}

/* ---- a packet socket ------------------------------------------------------------------------------- */

static void send_mmsg(void)
{
    int fd = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, 0), one = 1, room = 8 << 20;
    struct sockaddr_ll to = {.sll_family = AF_PACKET, .sll_ifindex = (int)if_nametoindex(plan.interface)};
    static struct mmsghdr messages[BATCH];
    static struct iovec parts[BATCH];
    if (fd < 0 || bind(fd, (void *)&to, sizeof to)) fail("packet socket");
    setsockopt(fd, SOL_PACKET, PACKET_QDISC_BYPASS, &one, sizeof one);
    setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &room, sizeof room);
    for (int over = 0; !over;) {
        uint64_t count = due(BATCH, &over);
        for (uint64_t i = 0; i < count; i++) {
            const struct frame *f = take();
            parts[i] = (struct iovec){memory + f->offset, f->length};
            messages[i].msg_hdr.msg_iov = &parts[i];
            messages[i].msg_hdr.msg_iovlen = 1;
        }
        for (uint64_t sent = 0; sent < count;) {
            int taken = sendmmsg(fd, messages + sent, (unsigned)(count - sent), 0);
            if (taken > 0) {
                sent += (uint64_t)taken;
                run.completed += (uint64_t)taken;
            } else if (errno == ENETDOWN || errno == ENXIO) {
                return;
            } else if (errno != ENOBUFS && errno != EAGAIN && errno != EINTR) {
                fail("sendmmsg");
            }
        }
    }
    close(fd);
}

static double number(const char *text)
{
    char *end;
    double value = strtod(text ? text : "", &end);
    if (!text || end == text || *end || value < 0) refuse("a number is missing or wrong");
    return value;
}

int main(int count, char **args)
{
    const char *path = NULL, *mode = "xdp";
    int core = -1;
    plan.loops = 1;
    for (int i = 1; i < count; i++) {
        const char *arg = args[i], *value = i + 1 < count ? args[i + 1] : NULL;
        if (!strcmp(arg, "--loops")) plan.loops = (uint64_t)number(value), i++;
        else if (!strcmp(arg, "--seconds")) plan.seconds = number(value), i++;
        else if (!strcmp(arg, "--rate")) plan.rate = number(value), i++;
        else if (!strcmp(arg, "--core")) core = (int)number(value), i++;
        else if (!strcmp(arg, "--mode") && value) mode = value, i++;
        else if (!strcmp(arg, "--same")) plan.is_same = 1;
        else if (*arg == '-') refuse("unknown option");
        else if (!plan.interface) plan.interface = arg;
        else if (!path) path = arg;
        else refuse("one interface and one file");
    }
    if (!plan.interface || !path) refuse("usage: replay IFACE FILE.pcap [--loops N] [--seconds S] [--rate PPS] "
                                         "[--core N] [--mode xdp|mmsg] [--same]");
    if (!plan.loops && plan.seconds <= 0) refuse("without an end: --loops or --seconds");
    if (!if_nametoindex(plan.interface)) fail(plan.interface);
    if (core >= 0) {
        cpu_set_t cores;
        CPU_ZERO(&cores);
        CPU_SET(core, &cores);
        if (sched_setaffinity(0, sizeof cores, &cores)) fail("sched_setaffinity");
    }
    load(path);
    signal(SIGINT, stop);
    signal(SIGTERM, stop);

    struct ring tx, done;
    int fd = -1;
    if (!strcmp(mode, "xdp") && (fd = open_xdp(&tx, &done)) < 0) {
        fprintf(stderr, "replay: AF_XDP: %s; sending with sendmmsg\n", strerror(errno));
        mode = "mmsg";
    }
    struct link before = link_counters(plan.interface);
    double cpu_before = cpu();
    run.begin = now();
    if (fd >= 0) send_xdp(fd, tx, done);
    else send_mmsg();
    double wall = now() - run.begin, cost = cpu() - cpu_before;
    struct link after = link_counters(plan.interface);
    uint64_t invalid = 0;
    if (fd >= 0) {
        struct xdp_statistics statistics;
        socklen_t length = sizeof statistics;
        if (!getsockopt(fd, SOL_XDP, XDP_STATISTICS, &statistics, &length)) invalid = statistics.tx_invalid_descs;
    }
    uint64_t dropped = after.dropped - before.dropped, linked = after.packets - before.packets;
    uint64_t lost = dropped + (run.handed - run.completed);
    uint64_t sent = run.completed - dropped;
    printf("mode=%s sent=%lu link=%lu handed=%lu lost=%lu invalid=%lu bytes=%lu seconds=%.6f cpu=%.6f pps=%.0f gbps=%.3f\n",
           mode, sent, linked, run.handed, lost, invalid, run.bytes, wall, cost, (double)sent / wall,
           (double)run.bytes * 8e-9 / wall);
    return sent == linked && !lost ? 0 : 1;
}
