import { createServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import { getCACertificates, setDefaultCACertificates } from 'node:tls'
import { certificate } from '../certificate.ts'

/** What the site of a client answers at one path. */
export type SiteAnswer = {
  status?: number
  type?: string
  location?: string
  body?: string
  delayMs?: number
}

export type ClientSite = {
  /** The address of a document. */
  url: (path: string) => string
  /** Paths that were asked for, in order. */
  asked: string[]
  close: () => Promise<void>
}

/**
 * Serves the documents of clients at https://client.example.com, which this process trusts until it is closed.
 * `answer` gets the path and the address of the site.
 */
export const startClientSite = async (
  answer: (path: string, site: ClientSite) => SiteAnswer,
): Promise<ClientSite> => {
  const trusted = getCACertificates('default')
  setDefaultCACertificates([...trusted, certificate.cert])
  const asked: string[] = []
  const server = createServer(certificate, (req, res) => {
    const path = req.url ?? '/'
    asked.push(path)
    const { status = 200, type = 'application/json', location, body = '', delayMs = 0 } = answer(path, site)
    const respond = () => {
      res.writeHead(status, { 'Content-Type': type, ...(location ? { Location: location } : {}) })
      res.end(body)
    }
    if (delayMs > 0) setTimeout(respond, delayMs).unref()
    else respond()
  })
  await new Promise<void>((listening) => server.listen(0, '127.0.0.1', listening))
  const { port } = server.address() as AddressInfo
  const site: ClientSite = {
    url: (path) => `https://client.example.com:${port}${path}`,
    asked,
    close: async () => {
      setDefaultCACertificates(trusted)
      server.closeAllConnections()
      await new Promise((closed) => server.close(closed))
    },
  }
  return site
}
