/* rxv3: how fast this machine can take packets from an interface at all.
 *
 * An AF_PACKET socket with a TPACKET_V3 ring, and nothing else: it touches one byte of each frame, behind the
 * headers that every analyser reads, and gives the block back. No decoding, no record, no table: a limit to measure
 * against, not a tool.
 *
 *     cc -O3 -march=native -o rxv3 rxv3.c && ./rxv3 IFACE [--ring MIB] [--core N] [--seconds S]
 *
 * Runs until SIGINT or SIGTERM (or so many seconds), then prints one line of key=value: packets, bytes, drops (those
 * of the kernel for want of room), CPU seconds and seconds from the first to the last packet.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <net/if.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>

enum { BLOCK = 1 << 20, BEHIND_HEADERS = 54, RETIRE_MS = 10 };

static volatile sig_atomic_t asked_to_stop;
static void stop(int signal) { (void)signal; asked_to_stop = 1; }

static void fail(const char *what)
{
    fprintf(stderr, "rxv3: %s: %s\n", what, strerror(errno));
    exit(3);
}
static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

int main(int count, char **args)
{
    const char *interface = NULL;
    double seconds = 0;
    unsigned blocks = 64;
    for (int i = 1; i < count; i++) {
        const char *value = i + 1 < count ? args[i + 1] : "";
        if (!strcmp(args[i], "--ring")) blocks = (unsigned)atoi(value), i++;
        else if (!strcmp(args[i], "--seconds")) seconds = atof(value), i++;
        else if (!strcmp(args[i], "--core")) {
            cpu_set_t cores;
            CPU_ZERO(&cores);
            CPU_SET(atoi(value), &cores);
            if (sched_setaffinity(0, sizeof cores, &cores)) fail("sched_setaffinity");
            i++;
        } else interface = args[i];
    }
    unsigned index = interface ? if_nametoindex(interface) : 0;
    if (!index || !blocks) {
        fprintf(stderr, "usage: rxv3 IFACE [--ring MIB] [--core N] [--seconds S]\n");
        return 2;
    }
    struct sigaction action = {.sa_handler = stop}; /* without SA_RESTART: poll ends */
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);

    /* Protocol 0 until the ring is there: nothing comes before it. */
    int fd = socket(AF_PACKET, SOCK_RAW, 0), version = TPACKET_V3;
    struct tpacket_req3 ring = {.tp_block_size = BLOCK, .tp_block_nr = blocks, .tp_frame_size = 2048,
                                .tp_frame_nr = blocks * (BLOCK / 2048), .tp_retire_blk_tov = RETIRE_MS};
    struct packet_mreq promiscuous = {.mr_ifindex = (int)index, .mr_type = PACKET_MR_PROMISC};
    struct sockaddr_ll to = {.sll_family = AF_PACKET, .sll_ifindex = (int)index, .sll_protocol = htons(ETH_P_ALL)};
    if (fd < 0) fail("packet socket");
    if (setsockopt(fd, SOL_PACKET, PACKET_VERSION, &version, sizeof version) ||
        setsockopt(fd, SOL_PACKET, PACKET_RX_RING, &ring, sizeof ring)) fail("ring");
    size_t size = (size_t)blocks * BLOCK;
    uint8_t *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, fd, 0);
    if (memory == MAP_FAILED) fail("mmap");
    setsockopt(fd, SOL_PACKET, PACKET_ADD_MEMBERSHIP, &promiscuous, sizeof promiscuous);
    if (bind(fd, (void *)&to, sizeof to)) fail("bind");

    uint64_t packets = 0, bytes = 0, work = 0;
    double first = 0, last = 0, begin = now();
    struct pollfd wait = {.fd = fd, .events = POLLIN};
    for (unsigned at = 0; !asked_to_stop && (seconds <= 0 || now() - begin < seconds);) {
        struct tpacket_block_desc *block = (void *)(memory + (size_t)at * BLOCK);
        if (!(__atomic_load_n(&block->hdr.bh1.block_status, __ATOMIC_ACQUIRE) & TP_STATUS_USER)) {
            poll(&wait, 1, 100);
            continue;
        }
        const uint8_t *packet = (uint8_t *)block + block->hdr.bh1.offset_to_first_pkt;
        for (uint32_t left = block->hdr.bh1.num_pkts; left; left--) {
            const struct tpacket3_hdr *header = (const void *)packet;
            work += packet[header->tp_mac + BEHIND_HEADERS];
            bytes += header->tp_len;
            packet += header->tp_next_offset;
        }
        packets += block->hdr.bh1.num_pkts;
        last = now();
        if (first == 0) first = last;
        __atomic_store_n(&block->hdr.bh1.block_status, TP_STATUS_KERNEL, __ATOMIC_RELEASE);
        at = (at + 1) % blocks;
    }
    struct tpacket_stats_v3 statistics = {0};
    socklen_t length = sizeof statistics;
    if (getsockopt(fd, SOL_PACKET, PACKET_STATISTICS, &statistics, &length)) fail("statistics");
    struct rusage cost;
    getrusage(RUSAGE_SELF, &cost);
    printf("packets=%lu bytes=%lu drops=%u cpu=%.6f seconds=%.6f work=%lu\n", packets, bytes, statistics.tp_drops,
           (double)(cost.ru_utime.tv_sec + cost.ru_stime.tv_sec) +
               1e-6 * (double)(cost.ru_utime.tv_usec + cost.ru_stime.tv_usec),
           last - first, work);
    return 0;
}
