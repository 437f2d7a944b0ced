import { createHmac, randomInt } from 'node:crypto'
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import { setTimeout as sleep } from 'node:timers/promises'
import { listen } from './sends-scene.ts'

/** What becomes of a send: when it arrives at the provider, and when its answer comes; null: never. */
export type Fate = { arrivesAfter: number | null; answersAfter: number | null; status?: number }

const STATUS_FATES = ['in time', 'in time', 'late', 'twice', 'never'] as const
const LATE_STATUS_MS = 20_000

export type SlowProvider = {
  url: string
  /** How often a send of each mark was requested. */
  requests: ReadonlyMap<string, number>
  /** Where the sandbox is, which may be restarted. */
  target: { url: string }
  /** Webhooks of servers that are up. */
  webhooks: Set<string>
  /** Resolves when no send and no status is on its way any more. */
  settled: () => Promise<void>
  close: () => Promise<void>
}

const readBody = async (request: IncomingMessage): Promise<Buffer> => {
  const chunks: Buffer[] = []
  for await (const chunk of request) chunks.push(chunk as Buffer)
  return Buffer.concat(chunks)
}

type Change = { value: { statuses?: { id: string }[] }; field: string }
type Webhook = { object: string; entry: { id: string; changes: Change[] }[] }

/**
 * Starts a proxy between servers and a sandbox. Sends, which are recognized by a mark in their text, meet
 * their fate; statuses come in time, late, twice or never. Everything else passes.
 */
export const startSlowProvider = async (
  sandboxUrl: string,
  getSecret: () => string,
  fateOf: (mark: string) => Fate,
): Promise<SlowProvider> => {
  const target = { url: sandboxUrl }
  const webhooks = new Set<string>()
  const requests = new Map<string, number>()
  const pending = new Set<Promise<void>>()
  const track = (work: Promise<void>): void => {
    const tracked = work.catch(() => {}).finally(() => pending.delete(tracked))
    pending.add(tracked)
  }

  const forward = async (
    request: IncomingMessage,
    body: Buffer,
  ): Promise<{ status: number; text: string }> => {
    const response = await fetch(target.url + request.url!, {
      method: request.method!,
      headers: {
        Authorization: request.headers.authorization ?? '',
        'Content-Type': request.headers['content-type'] ?? 'application/json',
      },
      ...(body.byteLength > 0 ? { body: Uint8Array.from(body) } : {}),
    })
    return { status: response.status, text: await response.text() }
  }

  const deliver = async (webhook: Webhook, delayMs: number): Promise<void> => {
    await sleep(delayMs)
    const body = JSON.stringify(webhook)
    const signature = createHmac('sha256', getSecret()).update(body).digest('hex')
    for (;;) {
      const urls = [...webhooks]
      const url = urls[randomInt(0, Math.max(1, urls.length))]
      const response = url
        ? await fetch(url, {
            method: 'POST',
            body,
            headers: { 'Content-Type': 'application/json', 'X-Hub-Signature-256': `sha256=${signature}` },
          }).catch(() => undefined)
        : undefined
      if (response?.status === 200) return
      await sleep(300)
    }
  }

  /** All statuses of a message have one fate, so that some messages have none. */
  const passStatuses = ({ object, entry }: Webhook): void => {
    for (const { id, changes } of entry)
      for (const change of changes) {
        const message = change.value.statuses?.[0]?.id
        const fate = message
          ? STATUS_FATES[createHmac('sha256', 'fate').update(message).digest()[0]! % STATUS_FATES.length]!
          : 'in time'
        const webhook = { object, entry: [{ id, changes: [change] }] }
        if (fate === 'never') continue
        track(deliver(webhook, fate === 'late' ? LATE_STATUS_MS : 0))
        if (fate === 'twice') track(deliver(webhook, 1000))
      }
  }

  const send = async (request: IncomingMessage, reply: ServerResponse, body: Buffer, mark: string) => {
    requests.set(mark, (requests.get(mark) ?? 0) + 1)
    const { arrivesAfter, answersAfter, status } = fateOf(mark)
    const arrival =
      arrivesAfter === null
        ? undefined
        : sleep(arrivesAfter).then(() => forward(request, body).catch(() => undefined))
    if (arrival) track(arrival.then(() => {}))
    if (answersAfter === null) {
      await arrival
      return request.socket.destroy()
    }
    await sleep(answersAfter)
    const answer = await arrival
    if (status !== undefined) return reply.writeHead(status).end('{"error":{"message":"Down","code":2}}')
    if (!answer) return request.socket.destroy()
    reply.writeHead(answer.status, { 'Content-Type': 'application/json' }).end(answer.text)
  }

  const handle = async (request: IncomingMessage, reply: ServerResponse): Promise<void> => {
    const body = await readBody(request)
    if (request.url === '/webhook') {
      passStatuses(JSON.parse(body.toString()) as Webhook)
      reply.writeHead(200).end()
      return
    }
    const isSend = request.method === 'POST' && request.url!.endsWith('/messages')
    const mark = isSend ? /mark-\d+/.exec(body.toString())?.[0] : undefined
    if (mark) return void (await send(request, reply, body, mark))
    const answer = await forward(request, body).catch(() => undefined)
    if (!answer) return void request.socket.destroy()
    reply.writeHead(answer.status, { 'Content-Type': 'application/json' }).end(answer.text)
  }

  const server: Server = createServer((request, reply) => void handle(request, reply).catch(() => {}))
  const url = await listen(server)
  return {
    url,
    requests,
    target,
    webhooks,
    settled: async () => {
      while (pending.size > 0) await Promise.all(pending)
    },
    close: async () => {
      server.closeAllConnections()
      await new Promise((closed) => server.close(closed))
    },
  }
}
