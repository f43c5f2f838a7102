/* Who makes room for a newcomer, where the places of connections that have proven nothing are all
 * taken. Pure.
 *
 * A stranger may say nothing, or say a right hello and never prove it; so what a connection has
 * said does not count. Its origin does: the origin that holds the most places beyond the ranks that
 * are expected from there gives one up, the one that came first. So who takes all places loses his
 * own, and a slow rank from elsewhere keeps the one it has. A rank at the strangers' own address
 * has as long as it takes them to come as often as there are places. */
#ifndef ASSAY_TRIAL_RUNNER_COLLECTIVE_ADMISSION_H
#define ASSAY_TRIAL_RUNNER_COLLECTIVE_ADMISSION_H

#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

/* Equal for addresses that one sender can use as he likes: an IPv4 address, the first 64 bits of an
 * IPv6 address, all Unix sockets of this host. */
uint64_t admission_origin(const struct sockaddr_storage *from);

struct admission_entry {
    uint64_t origin;
    int64_t since_ns; /* of a connection: when it came */
    size_t place;     /* of a connection: the caller's number of it, or */
    int is_expected;  /* 1: a rank that is missing and would come from there */
};

/* The place that is given up. `entries`: of n > 0 connections and ranks, at least one connection;
 * they are put into another order. O(n log n). */
size_t admission_victim(struct admission_entry *entries, size_t n);

#endif
