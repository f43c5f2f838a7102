/* The page's side of the worker: questions and their answers, in order. */
import type { Part } from "./columnar";
import type { JobInput, JobName, JobOutput } from "./jobs";
import { unpack } from "./packed";
import type { Summary } from "./summary";
import type { Answer, Question } from "./worker";

interface Waiting {
  resolve: (answer: never) => void;
  reject: (error: Error) => void;
}

type Unnumbered<T> = T extends unknown ? Omit<T, "id"> : never;

export class WorkerClient {
  readonly #worker = new Worker(new URL("./worker.ts", import.meta.url), { type: "module" });
  readonly #waiting = new Map<number, Waiting>();
  #next = 1;

  constructor() {
    this.#worker.addEventListener("message", (event: MessageEvent<Answer>) => this.#answered(event.data));
    this.#worker.addEventListener("error", (event) => this.#failAll(new Error(event.message || "The worker of the page could not be started")));
  }

  /** Give an answer of the server to the worker; the buffer is the worker's then. The rows that it
   * contains come back. */
  take(buffer: ArrayBuffer): Promise<Part> {
    return this.#ask({ kind: "take", buffer }, [buffer]);
  }

  /** Give the points of a metric to the worker; their version comes back. */
  takePoints(metric: string, buffer: ArrayBuffer): Promise<string> {
    return this.#ask({ kind: "points", metric, buffer }, [buffer]);
  }

  /** Give the attempts to the worker; their version comes back. */
  takeAttempts(buffer: ArrayBuffer): Promise<string> {
    return this.#ask({ kind: "attempts", buffer }, [buffer]);
  }

  /** What a comparison needs of a table, which is not kept. */
  summarise(buffer: ArrayBuffer, metric: string, goal: "minimize" | "maximize"): Promise<Summary> {
    return this.#ask({ kind: "summarise", buffer, metric, goal }, [buffer]);
  }

  set(number: number, column: string, value: number): void {
    this.#post({ kind: "set", number, column, value }, []);
  }

  /** Run a job on the worker's table, which has everything that take() gave before. */
  run<K extends JobName>(job: K, input: JobInput<K>): Promise<JobOutput<K>> {
    return this.#ask({ kind: "run", job, input }, []);
  }

  close(): void {
    this.#worker.terminate();
    this.#failAll(new DOMException("The view was left", "AbortError"));
  }

  #post(question: Unnumbered<Question>, transfer: Transferable[]): number {
    const id = this.#next++;
    this.#worker.postMessage({ ...question, id }, transfer);
    return id;
  }

  #ask<T>(question: Unnumbered<Question>, transfer: Transferable[]): Promise<T> {
    const id = this.#post(question, transfer);
    return new Promise<T>((resolve, reject) => this.#waiting.set(id, { resolve: resolve as (answer: never) => void, reject }));
  }

  #answered(answer: Answer): void {
    const waiting = this.#waiting.get(answer.id);
    this.#waiting.delete(answer.id);
    if ("error" in answer) waiting?.reject(new Error(answer.error));
    else waiting?.resolve(("part" in answer ? answer.part : unpack(answer.output)) as never);
  }

  #failAll(error: Error): void {
    for (const { reject } of this.#waiting.values()) reject(error);
    this.#waiting.clear();
  }
}
