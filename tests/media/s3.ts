import { createHash } from 'node:crypto'
import { mkdtempSync, rmSync } from 'node:fs'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo, Server, Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import S3rver from '@20minutes/s3rver'

/** What the storage does instead of its work. `cut` and `stall`: a body ends, or pauses, at its half. */
export type S3Fault = 'hang' | 'reset' | 'cut' | 'stall' | 403 | 500 | 503

export type TestS3 = {
  /** `WCRM_MEDIA` for a prefix of its bucket. */
  location: (prefix: string, more?: string) => string
  endpoint: string
  fault: S3Fault | undefined
  /** Of each request that arrived, such as `GET /media/prefix/1/2`. */
  requests: string[]
  close: () => Promise<void>
}

const BUCKET = 'media'

const errorBody = (code: string) =>
  `<?xml version="1.0" encoding="UTF-8"?><Error><Code>${code}</Code><Message>no</Message></Error>`

const refuse = (response: ServerResponse, status: number, code: string): void =>
  void response.writeHead(status, { 'Content-Type': 'application/xml' }).end(errorBody(code))

/** Lets half of each body out, then ends the connection or nothing. */
const halve = (response: ServerResponse, fault: 'cut' | 'stall'): void => {
  const write = response.write.bind(response)
  let isHalved = false
  const send = (chunk: unknown): void => {
    if (isHalved || !(chunk instanceof Uint8Array)) return
    isHalved = true
    write(chunk.subarray(0, Math.ceil(chunk.length / 2)), () => {
      if (fault === 'cut') response.destroy()
    })
  }
  response.write = (chunk: unknown) => {
    send(chunk)
    return true
  }
  response.end = (chunk?: unknown) => {
    send(chunk)
    return response
  }
}

/** As Amazon's: other bytes than those that were signed are refused. The server behind does not look. */
const checkDigest = (request: IncomingMessage, response: ServerResponse): void => {
  const signed = request.headers['x-amz-content-sha256']
  if (request.method !== 'PUT' || typeof signed !== 'string' || !/^[0-9a-f]{64}$/.test(signed)) return
  const hash = createHash('sha256')
  const emit = request.emit.bind(request)
  request.emit = (name: string, ...given: unknown[]) => {
    if (name === 'data') hash.update(given[0] as Buffer)
    if (name === 'end' && hash.digest('hex') !== signed) {
      refuse(response, 400, 'XAmzContentSHA256Mismatch')
      return false
    }
    return emit(name, ...given)
  }
}

/**
 * Makes the storage atomic, as the real one is: this server writes a file in place, so that a reader could find half of
 * it. Of one object, readers wait for the writer before them, and a writer for the readers.
 */
const createQueue = () => {
  const pending = new Map<string, { isWrite: boolean; done: Promise<unknown> }[]>()
  return async (request: IncomingMessage, response: ServerResponse, run: () => void): Promise<void> => {
    const isWrite = request.method !== 'GET' && request.method !== 'HEAD'
    const path = request.url!.split('?')[0]!
    const before = pending.get(path) ?? []
    const own = { isWrite, done: new Promise((done) => response.once('close', done)) }
    pending.set(path, [...before, own])
    void own.done.then(() => {
      const left = pending.get(path)!.filter((one) => one !== own)
      if (left.length > 0) pending.set(path, left)
      else pending.delete(path)
    })
    await Promise.all(before.filter((one) => isWrite || one.isWrite).map((one) => one.done))
    run()
  }
}

/**
 * Starts S3-compatible storage in this process: `@20minutes/s3rver`, which verifies signatures of version 4, with one
 * bucket, and with faults before it.
 */
export const startS3 = async (): Promise<TestS3> => {
  Object.assign(process.env, {
    AWS_ACCESS_KEY_ID: 'S3RVER',
    AWS_SECRET_ACCESS_KEY: 'S3RVER',
    AWS_EC2_METADATA_DISABLED: 'true',
  })
  const directory = mkdtempSync(join(tmpdir(), 'wcrm-s3-'))
  const storage = new S3rver({
    directory,
    silent: true,
    vhostBuckets: false,
    configureBuckets: [{ name: BUCKET }],
  })
  await storage.configureBuckets()
  const serve = storage.callback()
  const queue = createQueue()
  const sockets = new Set<Socket>()
  const server: Server = createServer((request, response) => {
    s3.requests.push(`${request.method} ${request.url}`)
    const { fault } = s3
    if (fault === 'hang') return
    if (fault === 'reset') return void request.socket.destroy()
    if (typeof fault === 'number') {
      request.resume()
      return refuse(response, fault, fault === 403 ? 'AccessDenied' : 'InternalError')
    }
    if (fault && request.method === 'GET') {
      halve(response, fault)
      serve(request, response)
      return
    }
    void queue(request, response, () => {
      checkDigest(request, response)
      serve(request, response)
    })
  })
  server.on('connection', (socket: Socket) => {
    sockets.add(socket)
    socket.once('close', () => sockets.delete(socket))
  })
  await new Promise<void>((listening) => server.listen(0, '127.0.0.1', listening))
  const endpoint = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  const s3: TestS3 = {
    location: (prefix, more = '') => `s3://${BUCKET}/${prefix}?endpoint=${endpoint}${more}`,
    endpoint,
    fault: undefined,
    requests: [],
    close: async () => {
      for (const socket of sockets) socket.destroy()
      await new Promise((closed) => server.close(closed))
      rmSync(directory, { recursive: true, force: true })
    },
  }
  return s3
}
