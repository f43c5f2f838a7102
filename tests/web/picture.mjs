/* The picture of a sweep's page for the README, from a running server:
 *   ASSAY_URL=http://127.0.0.1:8600 ASSAY_TOKEN=… \
 *       node tests/web/picture.mjs SWEEP docs/dashboard.png */
import { openBrowser, rowsOf, until, untilInSight } from "./browser.mjs";

const [sweep, file] = process.argv.slice(2);
const browser = await openBrowser();
const { page } = browser;
await page.setViewportSize({ width: 1400, height: 1060 });
await page.goto(`${process.env.ASSAY_URL}/#token=${process.env.ASSAY_TOKEN}&to=${encodeURIComponent(`/sweeps/${sweep}?sort=value`)}`);
await until(page, "trials", () => rowsOf(page, "Trials"), (n) => n > 0);
await page.getByText("Live", { exact: true }).waitFor();
const importance = page.getByRole("region", { name: "Importance", exact: true });
await untilInSight(page, "importance", importance, () => importance.locator("tbody tr").count(), (n) => n > 0);
await page.evaluate(() => scrollTo(0, 0));
await page.screenshot({ path: file });
await browser.close();
