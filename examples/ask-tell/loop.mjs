#!/usr/bin/env node
// Ask and tell in JavaScript, no packages: run as many of these side by side as you like.
//
//     node loop.mjs SWEEP [NAME]            with ASSAY_SERVER and ASSAY_TOKEN_FILE set
//
// NAME is whose trials these are. Start the loop again under the same name and it goes on with the trial it had begun;
// two loops that run at the same time need two names, or they would be handed the same trials.
import { readFileSync } from "node:fs";

const [sweep, client = "loop-mjs"] = process.argv.slice(2);
const token = readFileSync(process.env.ASSAY_TOKEN_FILE, "utf8").trim();

// Every request may be repeated: a server that is away for a while costs nothing but time.
async function post(path, body) {
  for (;;) {
    const answer = await fetch(`${process.env.ASSAY_SERVER}/v1/sweeps/${sweep}/suggestions${path}`, {
      method: "POST",
      headers: { Authorization: `Bearer ${token}`, "Content-Type": "application/json" },
      body: JSON.stringify({ client, ...body }),
      signal: AbortSignal.timeout(90_000),
    }).catch(() => null);
    if (answer?.ok) return answer.json();
    if (answer?.status === 409 && path) return null; // the lease had ended and somebody else has the trial
    if (answer && answer.status < 500 && answer.status !== 429) throw new Error(await answer.text());
    await new Promise((resolve) => setTimeout(resolve, 1000));
  }
}

// Yours goes here: render something, measure something.
const loss = ({ lr, width, kind }) =>
  Math.log10(lr / 0.03) ** 2 + Math.log2(width / 128) ** 2 / 8 + (kind === "plain" ? 0.1 : 0);

for (let answer; !(answer = await post("", { lease_ms: 60_000 })).done; ) {
  for (const { number, params } of answer.items) {
    let result;
    try {
      const value = loss(params);
      if (!Number.isFinite(value)) throw new RangeError(`the loss is ${value}`); // JSON has no NaN
      result = { metrics: { loss: value } };
    } catch (e) {
      result = { outcome: "failed", reason: String(e).slice(0, 2000) }; // worth knowing, too: the search avoids it
    }
    await post(`/${number}/complete`, result);
  }
}
