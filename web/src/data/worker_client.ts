/* The page's side of the worker: questions and their answers, in order. */
import { authorization, Failure, failureOf } from "../api/http";
import { whenReleased } from "../live/press";
import { token } from "../session";
import type { Part } from "./columnar";
import type { JobInput, JobName, JobOutput } from "./jobs";
import { unpack } from "./packed";
import type { Summary } from "./summary";
import type { Answer, Loading, Question } from "./worker";

interface Waiting {
  resolve: (answer: never) => void;
  reject: (error: Error) => void;
}

type Unnumbered<T> = T extends unknown ? Omit<T, "id"> : never;
type Unfiled<T> = T extends unknown ? Omit<T, "url" | "headers"> : never;

/** What the server answered in place of a file. */
class Refused extends Error {
  readonly status: number;
  readonly body: string;

  constructor(status: number, body: string) {
    super(`status ${status}`);
    this.status = status;
    this.body = body;
  }
}

export class WorkerClient {
  readonly #worker = new Worker(new URL("./worker.ts", import.meta.url), { type: "module" });
  readonly #waiting = new Map<number, Waiting>();
  #next = 1;

  constructor() {
    this.#worker.addEventListener("message", (event: MessageEvent<Answer>) => whenReleased(() => this.#answered(event.data)));
    this.#worker.addEventListener("error", (event) => this.#failAll(new Error(event.message || "The worker of the page could not be started")));
  }

  /** Load a table, or what changed of it. The rows come back, with the time that the worker computed. */
  take(url: string, signal: AbortSignal): Promise<{ part: Part; ms: number }> {
    return this.#load({ kind: "take" }, url, signal);
  }

  /** Load the points of a metric; their version comes back. */
  takePoints(metric: string, url: string, signal: AbortSignal): Promise<string> {
    return this.#load({ kind: "points", metric }, url, signal);
  }

  /** Load the attempts; their version comes back. */
  takeAttempts(url: string, signal: AbortSignal): Promise<string> {
    return this.#load({ kind: "attempts" }, url, signal);
  }

  /** What a comparison needs of a table, which is not kept. */
  summarise(url: string, metric: string, goal: "minimize" | "maximize", signal: AbortSignal): Promise<Summary> {
    return this.#load({ kind: "summarise", metric, goal }, url, signal);
  }

  set(number: number, column: string, value: number): void {
    this.#post({ kind: "set", number, column, value });
  }

  /** Run a job on the worker's table, which has everything that take() gave before. */
  run<K extends JobName>(job: K, input: JobInput<K>): Promise<JobOutput<K>> {
    return this.#ask({ kind: "run", job, input });
  }

  close(): void {
    this.#worker.terminate();
    this.#failAll(new DOMException("The view was left", "AbortError"));
  }

  #post(question: Unnumbered<Question>): number {
    const id = this.#next++;
    this.#worker.postMessage({ ...question, id });
    return id;
  }

  #ask<T>(question: Unnumbered<Question>, asked = (_id: number) => undefined as void): Promise<T> {
    const id = this.#post(question);
    return new Promise<T>((resolve, reject) => {
      this.#waiting.set(id, { resolve: resolve as (answer: never) => void, reject });
      asked(id);
    });
  }

  /** The worker loads the file with the present token; failures are those of send() (api/http.ts). */
  async #load<T>(what: Unfiled<Loading>, url: string, signal: AbortSignal): Promise<T> {
    signal.throwIfAborted();
    const asked = token.value;
    let stop = () => undefined as void;
    try {
      return await this.#ask<T>({ ...what, url: new URL(url, location.href).href, headers: authorization() }, (id) => {
        stop = () => {
          const waiting = this.#waiting.get(id);
          this.#waiting.delete(id);
          this.#post({ kind: "stop", of: id });
          waiting?.reject(new DOMException("The load was stopped", "AbortError"));
        };
        signal.addEventListener("abort", stop, { once: true });
      });
    } catch (error) {
      if (!(error instanceof Refused)) throw error;
      if (error.status === 0) throw new Failure(0, "unreachable", "The server cannot be reached");
      throw await failureOf(new Response(error.body, { status: error.status }), asked);
    } finally {
      signal.removeEventListener("abort", stop);
    }
  }

  #answered(answer: Answer): void {
    const waiting = this.#waiting.get(answer.id);
    this.#waiting.delete(answer.id);
    if ("error" in answer) waiting?.reject(new Error(answer.error));
    else if ("refused" in answer) waiting?.reject(new Refused(answer.refused.status, answer.refused.body));
    else waiting?.resolve(("part" in answer ? answer : unpack(answer.output)) as never);
  }

  #failAll(error: Error): void {
    for (const { reject } of this.#waiting.values()) reject(error);
    this.#waiting.clear();
  }
}
