// Exits with 0 when the server on this machine is ready. With a number of seconds it waits for that, while the process
// MAINPID (of systemd) lives; a start migrates the database first. `fetch` of Node needs no further program in the image.
const { WCRM_HOST: host = '', WCRM_PORT: port, MAINPID: pid } = process.env
const isEverywhere = ['', '0.0.0.0', '::'].includes(host)
const address = isEverywhere ? '127.0.0.1' : host.includes(':') ? `[${host}]` : host
const deadline = Date.now() + Number(process.argv[2] ?? 0) * 1000

const isReady = async () => {
  const signal = AbortSignal.timeout(2500)
  const answer = await fetch(`http://${address}:${port || 8787}/readyz`, { signal }).catch(() => undefined)
  return answer?.ok === true
}

const isAlive = () => {
  try {
    return pid === undefined || process.kill(Number(pid), 0)
  } catch {
    return false
  }
}

let ready = await isReady()
while (!ready && isAlive() && Date.now() < deadline) {
  await new Promise((resolve) => setTimeout(resolve, 200))
  ready = await isReady()
}
process.exitCode = ready ? 0 : 1
