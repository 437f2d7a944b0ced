import { createHash } from 'node:crypto'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { WebhookPart } from '../provider/webhook-fixture.ts'

/** The provider's files by media id. `info` overrides its description, `status` makes requests fail. */
export type Files = Map<string, { bytes: Buffer; info?: WebhookPart; status?: number }>

/** Runs `work` with a provider that serves files. `requests` are those made, in order. */
export const withProvider = async (
  work: (base: string, files: Files, requests: string[]) => Promise<void>,
): Promise<void> => {
  const files: Files = new Map()
  const requests: string[] = []
  const server = createServer((request, response) => {
    const [, kind, id] = /\/(?:v23\.0|(bytes))\/(\w+)/.exec(request.url!)!
    requests.push(`${kind ?? 'info'} ${id}`)
    const file = files.get(id!)
    const answer = (status: number, body: unknown) =>
      response.writeHead(status, { 'Content-Type': 'application/json' }).end(JSON.stringify(body))
    if (request.headers.authorization !== 'Bearer token')
      return answer(401, { error: { message: 'no token', type: 'OAuthException', code: 190 } })
    if (file?.status)
      return answer(file.status, { error: { message: 'later', type: 'OAuthException', code: 2 } })
    if (!file)
      return answer(400, {
        error: {
          message: 'Unsupported get request.',
          type: 'GraphMethodException',
          code: 100,
          error_subcode: 33,
        },
      })
    if (kind === 'bytes') return response.writeHead(200, { 'Content-Type': 'image/jpeg' }).end(file.bytes)
    answer(200, {
      url: `http://${request.headers.host}/bytes/${id}`,
      mime_type: 'image/jpeg',
      sha256: createHash('sha256').update(file.bytes).digest('hex'),
      file_size: file.bytes.length,
      id,
      messaging_product: 'whatsapp',
      ...file.info,
    })
  })
  await new Promise<void>((listening) => server.listen(0, '127.0.0.1', listening))
  try {
    await work(`http://127.0.0.1:${(server.address() as AddressInfo).port}`, files, requests)
  } finally {
    server.closeAllConnections()
    await new Promise((closed) => server.close(closed))
  }
}
