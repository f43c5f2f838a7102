/* Runs tests in one Chromium, one after the other, because starting it and Playwright takes as long as ten views:
 *   node tests/web/chromium.mjs late pages        each also runs alone: node tests/web/pages.mjs */
import { inOneChromium } from "./browser.mjs";

const names = process.argv.splice(2); // a test that runs alone may be told which of its steps to run
await inOneChromium(async () => {
  for (const name of names) {
    console.log(`# ${name}`);
    await import(`./${name}.mjs`);
  }
});
