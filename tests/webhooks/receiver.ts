import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'

export type Received = { path: string; headers: Record<string, string>; body: string }
/** `hang`: no answer until the receiver is closed. `drop`: the connection is closed instead. */
type Answer = { status?: number; headers?: Record<string, string>; body?: string | Buffer } | 'hang' | 'drop'
export type Receiver = {
  url: string
  received: Received[]
  answer: (received: Received) => Answer | Promise<Answer>
  close: () => Promise<void>
}

const read = async (request: IncomingMessage): Promise<Received> => {
  const chunks: Buffer[] = []
  for await (const chunk of request) chunks.push(chunk as Buffer)
  return {
    path: request.url!,
    headers: request.headers as Record<string, string>,
    body: Buffer.concat(chunks).toString(),
  }
}

const reply = async (
  receiver: Receiver,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> => {
  const received = await read(request)
  receiver.received.push(received)
  const answer = await receiver.answer(received)
  if (answer === 'drop') response.destroy()
  else if (answer !== 'hang') response.writeHead(answer.status ?? 200, answer.headers).end(answer.body)
}

/** Starts a customer's server that records webhooks. `answer` can be replaced at any time. */
export const startReceiver = async (answer: Receiver['answer'] = () => ({})): Promise<Receiver> => {
  const server = createServer((request, response) => {
    reply(receiver, request, response).catch(() => response.destroy())
  })
  await new Promise<void>((listening) => server.listen(0, '127.0.0.1', listening))
  const receiver: Receiver = {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/hooks`,
    received: [],
    answer,
    close: async () => {
      server.closeAllConnections()
      await new Promise((closed) => server.close(closed))
    },
  }
  return receiver
}
