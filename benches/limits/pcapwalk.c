/* pcapwalk: how fast this machine can walk a capture at all.
 *
 * The least a passive HTTP analyser has to do, and nothing else: read a classic little-endian pcap file of
 * Ethernet frames with read() into 256 KiB, or map it into memory where the word `mapped` is given, find the TCP payload of each frame (802.1Q/QinQ, IPv4, IPv6), look
 * at its first four bytes, and for a start line hash the 4-tuple with the sequence number that pairs request
 * and response and search the end of the line. No record, no table, no bounds checks beyond the record's own: a
 * limit to measure against, not a tool.
 *
 *     cc -O3 -march=native -o pcapwalk pcapwalk.c && ./pcapwalk FILE.pcap [mapped]
 *
 * Which form is faster depends on the machine. The kernel copies several times faster to whole pages than to an
 * address that is none of their beginnings, so the buffer is aligned.
 *
 * Prints one line of key=value: packets, wire bytes, requests, responses, a checksum of the work, seconds.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum {
    FILE_HEADER = 24,
    RECORD_HEADER = 16,
    PAGE = 4096,
    READ_SIZE = 256 << 10,
    CARRY_SIZE = 256 << 10, /* room in front of the buffer for a record that the last read cut */
    AHEAD = 3060            /* two full frames with their record headers: what to prefetch */
};

static struct {
    uint64_t packets, wire_bytes, requests, responses, work;
} total;

static inline uint16_t u16(const uint8_t *p) { uint16_t v; memcpy(&v, p, sizeof v); return v; }
static inline uint32_t u32(const uint8_t *p) { uint32_t v; memcpy(&v, p, sizeof v); return v; }

#define WORD(a, b, c, d) ((uint32_t)(a) | (uint32_t)(b) << 8 | (uint32_t)(c) << 16 | (uint32_t)(d) << 24)

enum kind { NOTHING, REQUEST, RESPONSE };

static inline enum kind start_line(uint32_t word)
{
    switch (word) {
    case WORD('H', 'T', 'T', 'P'):
        return RESPONSE;
    case WORD('G', 'E', 'T', ' '): case WORD('P', 'O', 'S', 'T'): case WORD('H', 'E', 'A', 'D'):
    case WORD('P', 'U', 'T', ' '): case WORD('D', 'E', 'L', 'E'): case WORD('O', 'P', 'T', 'I'):
    case WORD('P', 'A', 'T', 'C'): case WORD('T', 'R', 'A', 'C'): case WORD('C', 'O', 'N', 'N'):
        return REQUEST;
    default:
        return NOTHING;
    }
}

/* Walks the whole records in [p, end) and returns the first that is not whole. */
static const uint8_t *walk(const uint8_t *p, const uint8_t *end)
{
    while (p + RECORD_HEADER <= end) {
        const uint8_t *frame = p + RECORD_HEADER;
        uint32_t captured = u32(p + 8);
        const uint8_t *next = frame + captured;
        if (next > end)
            break;
        total.packets++;
        total.wire_bytes += u32(p + 12);
        total.work += u32(p);
        p = next;
        __builtin_prefetch(next + AHEAD);
        __builtin_prefetch(next + AHEAD + 64);
        if (captured < 54)
            continue;

        uint16_t type = u16(frame + 12);
        const uint8_t *ip = frame + 14;
        while (type == 0x0081 || type == 0xa888) {
            type = u16(ip + 2);
            ip += 4;
        }
        const uint8_t *tcp;
        uint32_t length; /* of the TCP segment, as IP says */
        if (type == 0x0008) {
            if (ip[9] != 6)
                continue;
            uint32_t header = (ip[0] & 15u) * 4;
            tcp = ip + header;
            length = __builtin_bswap16(u16(ip + 2)) - header;
        } else if (type == 0xdd86) {
            if (ip[6] != 6)
                continue;
            tcp = ip + 40;
            length = __builtin_bswap16(u16(ip + 4));
        } else {
            continue;
        }

        uint32_t offset = (uint32_t)(tcp[12] >> 4) * 4;
        const uint8_t *payload = tcp + offset;
        if (length <= offset || payload + 8 > next)
            continue;
        enum kind kind = start_line(u32(payload));
        if (kind == NOTHING)
            continue;
        if (kind == REQUEST)
            total.requests++;
        else
            total.responses++;
        total.work += u32(ip + 12) ^ u32(ip + 16) ^ u16(tcp) ^ u16(tcp + 2) ^ u32(tcp + (kind == REQUEST ? 8 : 4));
        const uint8_t *newline = memchr(payload, '\n', (size_t)(next - payload));
        total.work += newline ? (uint64_t)(newline - payload) : 0;
    }
    return p;
}

static int walk_mapped(int fd)
{
    struct stat file;
    if (fstat(fd, &file))
        return -1;
    size_t size = (size_t)file.st_size;
    const uint8_t *bytes = mmap(NULL, size, PROT_READ, MAP_SHARED, fd, 0);
    if (bytes == MAP_FAILED)
        return -1;
    madvise((void *)bytes, size, MADV_SEQUENTIAL);
    walk(bytes + FILE_HEADER, bytes + size);
    return 0;
}

static int walk_read(int fd)
{
    uint8_t *memory = aligned_alloc(PAGE, CARRY_SIZE + READ_SIZE + PAGE);
    if (!memory)
        return -1;
    uint8_t *buffer = memory + CARRY_SIZE;
    size_t carried = 0;
    int first = 1;
    for (ssize_t got; (got = read(fd, buffer, READ_SIZE)) > 0;) {
        const uint8_t *end = buffer + got;
        const uint8_t *rest = walk(buffer - carried + (first ? FILE_HEADER : 0), end);
        first = 0;
        carried = (size_t)(end - rest);
        if (carried > CARRY_SIZE) {
            fprintf(stderr, "pcapwalk: a record of more than %d bytes\n", CARRY_SIZE);
            exit(3);
        }
        memmove(buffer - carried, rest, carried);
    }
    return 0;
}

int main(int argc, char **argv)
{
    int is_mapped = argc == 3 && !strcmp(argv[2], "mapped");
    if (argc != 2 && !is_mapped) {
        fprintf(stderr, "usage: pcapwalk FILE.pcap [mapped]\n");
        return 2;
    }
    int fd = open(argv[1], O_RDONLY);
    struct timespec begin, finish;
    clock_gettime(CLOCK_MONOTONIC, &begin);
    if (fd < 0 || (is_mapped ? walk_mapped(fd) : walk_read(fd))) {
        perror(argv[1]);
        return 3;
    }
    clock_gettime(CLOCK_MONOTONIC, &finish);
    double seconds = (double)(finish.tv_sec - begin.tv_sec) + (double)(finish.tv_nsec - begin.tv_nsec) * 1e-9;
    printf("packets=%lu wire_bytes=%lu requests=%lu responses=%lu work=%lu seconds=%.6f\n", total.packets,
           total.wire_bytes, total.requests, total.responses, total.work, seconds);
    return 0;
}
