import assert from 'node:assert/strict'
import { request as httpRequest } from 'node:http'
import type { Reply } from '../doors.ts'
import { assertProblem } from '../problems.ts'

export type RawRequest = {
  method?: string
  headers?: Record<string, string | string[]>
  body?: string | Buffer | undefined
  chunked?: boolean
}

/** Sends requests exactly as given, without the corrections that `fetch` makes. */
export type RawClient = {
  raw: (path: string, request?: RawRequest) => Promise<Reply>
  /** Expects an error with this status and code, as a complete problem. */
  refused: (status: number, code: string, path: string, request?: RawRequest) => Promise<Reply>
  /** Expects 400 `invalid_input`. */
  badInput: (path: string, request: RawRequest) => Promise<Reply>
}

export const post = (body: string | Buffer, more: RawRequest = {}): RawRequest => ({
  method: 'POST',
  body,
  ...more,
})

export const createRawClient = (url: string, key: string): RawClient => {
  const raw = (
    path: string,
    { method = 'GET', headers = {}, body, chunked = false }: RawRequest = {},
  ): Promise<Reply> =>
    new Promise((resolve, reject) => {
      const sized =
        body !== undefined && !chunked ? { 'Content-Length': String(Buffer.byteLength(body)) } : {}
      const request = httpRequest(
        url,
        {
          method,
          path,
          agent: false,
          headers: {
            Authorization: `Bearer ${key}`,
            ...(body === undefined ? {} : { 'Content-Type': 'application/json' }),
            ...sized,
            ...headers,
          },
        },
        (response) => {
          let text = ''
          response
            .setEncoding('utf8')
            .on('data', (chunk: string) => {
              text += chunk
            })
            .on('end', () => {
              const isJson = /json/.test(response.headers['content-type'] ?? '')
              resolve({
                status: response.statusCode!,
                text,
                body: isJson && text !== '' ? JSON.parse(text) : undefined,
                headers: response.headers as Record<string, string>,
              })
            })
        },
      )
      request.on('error', reject)
      if (chunked && body !== undefined)
        for (let at = 0; at < body.length; at += 65536) request.write(body.slice(at, at + 65536))
      request.end(chunked ? undefined : body)
    })

  const refused = async (
    status: number,
    code: string,
    path: string,
    options: RawRequest = {},
  ): Promise<Reply> => {
    const reply = await raw(path, options)
    assert.deepEqual(
      [reply.status, reply.body?.code],
      [status, code],
      `${options.method ?? 'GET'} ${path.slice(0, 80)}: ${reply.text.slice(0, 300)}`,
    )
    assertProblem(reply, url)
    return reply
  }

  return {
    raw,
    refused,
    badInput: (path, options) => refused(400, 'invalid_input', path, options),
  }
}
