import { createServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import { getCACertificates, setDefaultCACertificates } from 'node:tls'

/** A certificate of client.example.com for tests, and its key: they protect nothing. */
const key = `-----BEGIN PRIVATE KEY-----
MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQgieN3mz1NRRH9jmyI
+TEWHUCbdxpHSNViNuHPl2td4lGhRANCAAS7Dz9v0e4aP5hiD+tlI7RM+NopO4up
qrw1FockG50VVE8/YRiZWouAooupgUuL21x5/s4Uuw2MTW68z5zoV1Jc
-----END PRIVATE KEY-----
`
const cert = `-----BEGIN CERTIFICATE-----
MIIBvDCCAWGgAwIBAgIUQY2H+mkLr8s2gqPQ3mpgM6e4nJEwCgYIKoZIzj0EAwIw
DzENMAsGA1UEAwwEVGVzdDAgFw0yNjExMjIxNzQ3NTVaGA8yMTI2MTAyOTE3NDc1
NVowDzENMAsGA1UEAwwEVGVzdDBZMBMGByqGSM49AgEGCCqGSM49AwEHA0IABLsP
P2/R7ho/mGIP62UjtEz42ik7i6mqvDUWhyQbnRVUTz9hGJlai4Cii6mBS4vbXHn+
zhS7DYxNbrzPnOhXUlyjgZgwgZUwHQYDVR0OBBYEFD8VMvvj0eEZdrr1ap0DGDy5
6tDgMB8GA1UdIwQYMBaAFD8VMvvj0eEZdrr1ap0DGDy56tDgMA8GA1UdEwEB/wQF
MAMBAf8wQgYDVR0RBDswOYISY2xpZW50LmV4YW1wbGUuY29tghBzbG93LmV4YW1w
bGUuY29tghFvdGhlci5leGFtcGxlLmNvbTAKBggqhkjOPQQDAgNJADBGAiEA5ZLI
rPCxsWFB9zJNp1zJc/m15tkrzP9cXOgeedKByMcCIQDa1jHA9JtDbqaO/p8c8G/R
ryGu3W8152+IKXbXUzyt9w==
-----END CERTIFICATE-----
`

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
  setDefaultCACertificates([...trusted, cert])
  const asked: string[] = []
  const server = createServer({ key, cert }, (req, res) => {
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
