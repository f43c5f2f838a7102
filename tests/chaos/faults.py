"""The kinds of faults, and a schedule of them that follows from a seed.

A fault is a function of the storm (chaos.py) and a random generator of its own. It does its harm at once and returns
what it did, or None if there was nothing to harm; what must happen later (the restart, SIGCONT) it leaves with
storm.later(seconds, function). Everything runs in the main thread."""
import random
import signal

from cluster import signal_pid
from fleet import LEASE_S

KINDS = {}


def fault(function):
    KINDS[function.__name__.replace("_", "-")] = function
    return function


def schedule(seed, seconds, kinds, quiet_s, every_s):
    """[(seconds from the begin, kind, seed of its own)]: every kind once, in another order each time, until it is over."""
    rng, at, found = random.Random(f"chaos {seed}"), quiet_s, []
    while at < seconds:
        order = sorted(kinds)
        rng.shuffle(order)
        for kind in order:
            if at >= seconds:
                break
            found.append((at, kind, rng.randrange(1 << 30)))
            at += every_s * rng.uniform(0.6, 1.4)
    return found


def pause(storm, pid, seconds):
    """SIGSTOP now, SIGCONT later."""
    if not signal_pid(pid, signal.SIGSTOP):
        return False
    storm.later(seconds, lambda: signal_pid(pid, signal.SIGCONT))
    return True


@fault
def kill_server(storm, rng):
    i, away = rng.randrange(2), rng.choice([0, 0.5, 2])
    storm.fleet.servers[i].kill()
    storm.later(away, lambda: storm.fleet.start_server(i))
    return f"server {i}, away for {away} s"


@fault
def stop_server(storm, rng):
    server, seconds = storm.fleet.servers[rng.randrange(2)], rng.choice([0.5, 2, LEASE_S + 2])
    return server.is_alive() and pause(storm, server.process.pid, seconds) and f"{server.name} for {seconds} s"


@fault
def kill_runner(storm, rng):
    runner, away = rng.choice(storm.fleet.runners), rng.choice([0, 1, LEASE_S + 3])
    runner.kill()
    storm.later(away, runner.start)
    return f"{runner.name}, away for {away} s"


@fault
def stop_runner(storm, rng):
    """Past its lease: when it goes on it is a zombie, and must be fenced."""
    runner, seconds = rng.choice(storm.fleet.runners), rng.choice([1, LEASE_S + 3])
    return runner.is_alive() and pause(storm, runner.process.pid, seconds) and f"{runner.name} for {seconds} s"


@fault
def kill_trial(storm, rng):
    pids = storm.fleet.trials()
    return pids and signal_pid(rng.choice(pids), signal.SIGKILL) and "one process"


@fault
def stop_trial(storm, rng):
    pids, seconds = storm.fleet.trials(), rng.choice([0.5, 3])
    return pids and pause(storm, rng.choice(pids), seconds) and f"one process for {seconds} s"


@fault
def terminate_backend(storm, rng):
    chosen = rng.choice(["true", "pid = (select max(pid) from pg_stat_activity where application_name = 'assayd')"])
    done = storm.cluster.psql("select count(pg_terminate_backend(pid)) from pg_stat_activity where application_name like "
                              f"'assayd%' and {chosen}")
    return done.returncode == 0 and f"{done.stdout.strip()} backends"


@fault
def restart_postgres(storm, rng):
    if storm.cluster.postmaster.poll() is not None:
        return None
    away = rng.choice([0, 1])
    storm.cluster.stop()
    storm.database_away(away)
    return f"immediate, away for {away} s"


@fault
def power_cut(storm, rng):
    """Of the database's machine."""
    if storm.cluster.postmaster.poll() is not None:
        return None
    away, may_tear = rng.choice([0, 1]), rng.random() < 0.5
    if storm.options.plant == "synchronous_commit" and not storm.done:  # the first one of the run
        may_tear, taken = False, storm.cut_that_loses(rng)
    else:
        taken = storm.cluster.power_cut(rng, may_tear)
    storm.database_away(away)
    return f"took back {taken} bytes of pg_wal{', by sectors' if may_tear else ''}, away for {away} s"


@fault
def power_cut_runner(storm, rng):
    i, away = rng.randrange(len(storm.fleet.runners)), rng.choice([0, 2])
    taken = storm.fleet.power_cut_runner(i, rng)
    storm.later(away, storm.fleet.runners[i].start)
    return f"runner {i} took back {taken} bytes, away for {away} s"


@fault
def lose_commits(storm, rng):
    proxy, n = rng.choice(storm.fleet.database_proxies), rng.choice([1, 3, 10])
    proxy.command(f"drop {n}")
    storm.later(2, lambda: proxy.command("drop 0"))
    return f"up to {n} answers of PostgreSQL"


@fault
def lose_answers(storm, rng):
    n = rng.choice([1, 3, 10])
    storm.fleet.http_proxy.command(f"drop {n}")
    storm.later(2, lambda: storm.fleet.http_proxy.command("drop 0"))
    return f"up to {n} answers of the servers to ends of trials"


@fault
def partition(storm, rng):
    proxies = [*storm.fleet.database_proxies, storm.fleet.http_proxy]
    proxy, seconds = rng.choice(proxies), rng.choice([0.5, 2, LEASE_S + 2])
    proxy.command(f"stall {int(seconds * 1000)}")
    if rng.random() < 0.3:
        proxy.command("cut")
    storm.later(seconds, lambda: None)
    where = "HTTP" if proxy is proxies[-1] else f"database of server {proxies.index(proxy)}"
    return f"{where} for {seconds} s"


@fault
def full_disk(storm, rng):
    """Of PostgreSQL, which may die of it, or of a runner."""
    chosen, seconds = rng.choice([None, *storm.fleet.runners]), rng.choice([1, 3])
    control = chosen.control if chosen else storm.cluster.control
    control.set(is_full=True)
    storm.later(seconds, lambda: control.set(is_full=False))
    return f"{chosen.name if chosen else 'PostgreSQL'} for {seconds} s"


@fault
def clock_jump(storm, rng):
    """Of a runner and its trials; it stays."""
    runner, hours = rng.choice(storm.fleet.runners), rng.choice([-24 * 365, -2, -0.01, 0.01, 2, 24 * 365])
    runner.control.set(offset_ns=int(hours * 3600 * 1e9))
    return f"{runner.name} by {hours} h"


@fault
def idle_transaction(storm, rng):
    """Holds old row versions, or rows that everybody wants."""
    text = rng.choice(["select count(*) from trial", "select count(*) from trial",
                       "select key from sweep where state = 'running' order by key limit 1 for no key update"])
    seconds = 1.5 if "update" in text else rng.choice([5, 15])
    client = storm.cluster.idle_transaction(text)

    def end():
        client.kill()
        client.wait()
        client.stdin.close()
    storm.later(seconds, end)
    return f"{text} and then nothing for {seconds} s"


@fault
def poison(storm, rng):
    storm.load.start_thread(storm.load.poison, rng)  # a server that is stopped keeps it waiting
    return "20 requests"


def apply(storm, kind, seed):
    """What it did; None: there was nothing to harm."""
    return KINDS[kind](storm, random.Random(seed)) or None
