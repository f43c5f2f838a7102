/* The models of the fixture: as the server answers, with one of a trial, one of an ensemble, and one
 * whose sweep was deleted. */

export function makeModels({ iso, problem, emit, sweeps, sha256, nasty }) {
  const models = new Map();
  const changed = (name) => emit("model.changed", { model: name });
  const versionOf = (name, version, fields) => ({
    model: name, version, kind: "trial", sweep: "digits-mlp", sweep_id: "digits-mlp", trials: [12], task: "classification", input: "table",
    metrics: { val_error: 0.021, val_loss: 0.1234 }, measured_on: "held-out rows", sha256, size: 19, created_by: "t1", created_at: iso(Date.now() - 60_000 * (10 - version)), ...fields,
  });
  const wholeOf = (v) => ({
    ...v,
    inputs: [{ name: "pixel_0", kind: "number", missing: false }, { name: "colour", kind: "category", values: ["blue", "red", nasty], missing: true }, ...Array.from({ length: 30 }, (_, i) => ({ name: `pixel_${i + 1}`, kind: "number", missing: false }))],
    outputs: { target: "class", classes: Array.from({ length: 10 }, (_, i) => String(i)) },
    members: v.trials.map((trial, i) => ({ trial, attempt: 1, seed: "1249739987", weight: 1 / v.trials.length, kind: i % 2 ? "linear" : "mlp" })),
    lineage: { sweep: v.sweep, sweep_id: v.sweep_id, document: { name: v.sweep, metric: { name: "error", goal: "minimize" }, parameters: { lr: { type: "float", min: 0.0001, max: 0.3, scale: "log" } } }, dataset: { name: "digits", sha256 } },
  });

  function make(name) {
    const m = { name, newest: 0, aliases: {}, versions: [], created_at: iso(Date.now()), changed_at: iso(Date.now()) };
    models.set(name, m);
    return m;
  }
  function addVersion(m, fields) {
    m.newest++;
    m.versions.unshift(versionOf(m.name, m.newest, fields));
    m.changed_at = iso(Date.now());
    return m.versions[0];
  }
  const digits = make("digits");
  addVersion(digits, {});
  addVersion(digits, { kind: "ensemble", trials: [3, 4, 5, 6, 7, 8, 9, 10, 12, 14], metrics: { error: 0.0149 }, measured_on: "held-out rows, cross-fitted" });
  addVersion(digits, { sweep: "gone", sweep_id: "gone", trials: [0], metrics: { val_error: 0.03, [`val_${nasty}`]: 1 } });
  Object.assign(digits.aliases, { champion: 2, candidate: 3 });
  make("Bare.model-1");

  const defaultOf = (m) => m.aliases.champion ?? m.versions[0]?.version ?? null;
  const viewOf = (m) => ({ name: m.name, versions: m.versions.length, default_version: defaultOf(m), aliases: m.aliases, created_at: m.created_at, changed_at: m.changed_at });
  const withAliases = (m, v) => ({ ...v, aliases: Object.keys(m.aliases).filter((a) => m.aliases[a] === v.version).sort() });
  const none = (what) => problem(404, "not_found", `there is no ${what}`);

  function aliasAnswer(method, m, alias, body) {
    const at = "/v1/models/{model}/aliases/{alias}";
    if (!/^[A-Za-z][A-Za-z0-9._-]{0,63}$/.test(alias)) return problem(400, "invalid", `'${alias}' is not an alias`);
    if (method === "DELETE") delete m.aliases[alias];
    else m.aliases[alias] = body.version;
    changed(m.name);
    return method === "DELETE" ? { status: 204 } : { at, body: viewOf(m) };
  }

  function versionAnswer(method, m, id) {
    const number = id === "default" ? defaultOf(m) : m.aliases[id] ?? Number(id);
    const v = m.versions.find((x) => x.version === number);
    if (!v) return none(`version ${id}`);
    if (method !== "DELETE") return { at: "/v1/models/{model}/versions/{version}", body: wholeOf(withAliases(m, v)) };
    m.versions.splice(m.versions.indexOf(v), 1);
    changed(m.name);
    return { status: 204 };
  }

  function addAnswer(name, body) {
    if (!/^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/.test(name)) return problem(400, "invalid", `'${name}' is not the name of a model`);
    if (!sweeps.has(body.sweep)) return none(`sweep ${body.sweep}`);
    const m = models.get(name) ?? make(name);
    const v = addVersion(m, { sweep: body.sweep, sweep_id: body.sweep, ...(body.trial === undefined ? {} : { trials: [body.trial] }) });
    changed(name);
    return { at: "/v1/models/{model}/versions", body: wholeOf(withAliases(m, v)) };
  }

  /** The answer to a request below /v1/models. */
  function answer(method, [, name, below, id], body) {
    const m = models.get(name);
    if (!name) return { at: "/v1/models", body: { items: [...models.values()].map(viewOf).sort((a, b) => (a.name < b.name ? -1 : 1)), next_cursor: null } };
    if (method === "POST" && below === "versions") return addAnswer(name, body);
    if (!m) return none(`model ${name}`);
    if (method === "DELETE" && !below) {
      models.delete(name);
      changed(name);
      return { status: 204 };
    }
    if (below === "aliases") return aliasAnswer(method, m, id, body);
    if (below === "versions" && id) return versionAnswer(method, m, id);
    if (below === "versions") return { at: "/v1/models/{model}/versions", body: { items: m.versions.map((v) => withAliases(m, v)), next_cursor: null } };
    return { at: "/v1/models/{model}", body: viewOf(m) };
  }

  /** The versions whose lineage names the data set. */
  const learned = (dataset) => [...models.values()].flatMap((m) => m.versions.filter((v) => wholeOf(v).lineage.dataset.name === dataset).map((v) => withAliases(m, v)));

  return { answer, models, learned };
}
