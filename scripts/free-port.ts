import { randomInt } from 'node:crypto'
import { once } from 'node:events'
import { createServer } from 'node:net'

/** Below what Linux gives to connections, and to servers that ask for any port: those may take one at any time. */
const PORTS = { first: 12_000, end: 32_000 }
const ATTEMPTS = 50

/** Returns a port that nobody listens on. It stays free, unless somebody else asks for that very one. */
export const freePort = async (): Promise<number> => {
  for (let n = 0; n < ATTEMPTS; n++) {
    const port = randomInt(PORTS.first, PORTS.end)
    const server = createServer()
    try {
      server.listen(port, '127.0.0.1')
      await once(server, 'listening')
    } catch {
      continue
    }
    server.close()
    await once(server, 'close')
    return port
  }
  throw new Error(`Of ${ATTEMPTS} ports none was free.`)
}
