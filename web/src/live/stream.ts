/* Server-sent events over fetch(): EventSource cannot send the Authorization header.
 *
 * One stream at a time. It reconnects by itself, with growing pauses and with Last-Event-ID, so
 * that no event is missed. `connection` is its state, which the head of the page shows. */
import { signal } from "@preact/signals";
import { authorization, failureOf, isAbort } from "../api/http";
import type { Event as ApiEvent } from "../api/types";
import { token } from "../session";

export type Connection = "off" | "connecting" | "live" | "lost";
export const connection = signal<Connection>("off");

/* The stream whose state is shown. A new view starts its stream before the old view stops its
 * own. */
let latest: AbortController | null = null;

const FIRST_PAUSE_MS = 500;
const LONGEST_PAUSE_MS = 15_000;
/* The server sends a comment every 15 s; a stream that is silent for much longer is dead. */
const SILENCE_MS = 45_000;
/* After a longer gap the server may have dropped events, so all data is loaded again. */
const TRUSTED_GAP_MS = 60_000;

export interface Listener {
  /** An event arrived. */
  event(event: ApiEvent): void;
  /** The stream has begun: data loaded before may be out of date. */
  start(): void;
}

/** One message of a text/event-stream: its id and its data lines joined. */
export function parseMessage(text: string): { id: string | null; data: string } {
  let id: string | null = null;
  const data: string[] = [];
  for (const line of text.split("\n")) {
    if (line.startsWith("id:")) id = line.slice(3).trim();
    else if (line.startsWith("data:")) data.push(line.slice(5).replace(/^ /, ""));
  }
  return { id, data: data.join("\n") };
}

/** Follow the events at `path` until the returned function is called. */
export function follow(path: string, listener: Listener): () => void {
  const stop = new AbortController();
  latest = stop;
  let lastId: string | null = null;
  let aliveAt = 0;

  function tell(state: Connection): void {
    if (latest === stop) connection.value = state;
  }

  function take(text: string): void {
    const { id, data } = parseMessage(text);
    if (id !== null) lastId = id;
    if (data === "") return;
    try {
      listener.event(JSON.parse(data) as ApiEvent);
    } catch {
      // A line that is not an event is ignored; the next load is correct anyway.
    }
  }

  async function read(body: ReadableStream<Uint8Array>, alive: () => void): Promise<void> {
    const reader = body.getReader();
    const decoder = new TextDecoder();
    let rest = "";
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      alive();
      rest += decoder.decode(value, { stream: true }).replace(/\r\n?/g, "\n");
      const messages = rest.split("\n\n");
      rest = messages.pop() ?? "";
      messages.forEach(take);
    }
  }

  /** What was followed does not exist (any more): that is no lost connection. The load that follows
   * finds out, too. */
  function gone(): void {
    stop.abort();
    tell("off");
    listener.start();
  }

  /** One connection, from its request to its end. */
  async function connect(): Promise<void> {
    const dead = new AbortController();
    let watchdog = setTimeout(() => dead.abort(), SILENCE_MS);
    const alive = () => {
      aliveAt = Date.now();
      clearTimeout(watchdog);
      watchdog = setTimeout(() => dead.abort(), SILENCE_MS);
    };
    const end = () => dead.abort();
    stop.signal.addEventListener("abort", end);
    try {
      const resumes = lastId !== null && Date.now() - aliveAt < TRUSTED_GAP_MS;
      const headers: Record<string, string> = { ...authorization(), Accept: "text/event-stream" };
      if (resumes && lastId !== null) headers["Last-Event-ID"] = lastId;
      const asked = token.value;
      const response = await fetch(path, { headers, signal: dead.signal, cache: "no-store" });
      if (stop.signal.aborted) return;
      if (!response.ok || !response.body) {
        lastId = null;
        await failureOf(response, asked);
        if (response.status === 404) gone();
        return;
      }
      tell("live");
      alive();
      if (!resumes) listener.start();
      await read(response.body, alive);
    } finally {
      clearTimeout(watchdog);
      stop.signal.removeEventListener("abort", end);
    }
  }

  async function run(): Promise<void> {
    let pause = FIRST_PAUSE_MS;
    while (!stop.signal.aborted) {
      tell(connection.value === "lost" ? "lost" : "connecting");
      const before = aliveAt;
      try {
        await connect();
      } catch (error) {
        if (!isAbort(error) && !(error instanceof TypeError)) throw error;
      }
      if (stop.signal.aborted) break;
      pause = aliveAt > before ? FIRST_PAUSE_MS : Math.min(pause * 2, LONGEST_PAUSE_MS);
      tell("lost");
      await new Promise((resolve) => setTimeout(resolve, pause * (0.75 + Math.random() / 2)));
    }
  }

  void run();
  return () => {
    stop.abort();
    tell("off");
  };
}
