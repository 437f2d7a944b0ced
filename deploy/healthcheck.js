// Exits with 0 when the server in this container is ready. `fetch` of Node needs no further program in the image.
const url = `http://127.0.0.1:${process.env.WCRM_PORT || 8787}/readyz`
const answer = await fetch(url, { signal: AbortSignal.timeout(2500) }).catch(() => undefined)
process.exitCode = answer?.ok ? 0 : 1
