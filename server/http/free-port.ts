import { once } from 'node:events'
import { createServer, type AddressInfo } from 'node:net'

/** Returns the port, or a free one for 0. Throws EADDRINUSE when somebody listens on it. */
export const findFreePort = async (host: string, port: number): Promise<number> => {
  const server = createServer().listen(port, host)
  await once(server, 'listening')
  const { port: found } = server.address() as AddressInfo
  server.close()
  await once(server, 'close')
  return found
}
