import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { buffer } from 'node:stream/consumers'

// A collector of OpenTelemetry for tests: it receives OTLP over HTTP (https://opentelemetry.io/docs/specs/otlp/) and
// reads of the protocol buffers what the tests look at, by the numbers of opentelemetry-proto.

type Bytes = Uint8Array
type Field = { number: number; value: bigint | Bytes }

/** A span as it was received. Times are in nanoseconds. */
export type ReceivedSpan = {
  traceId: string
  spanId: string
  parentId: string
  name: string
  start: bigint
  end: bigint
  attributes: Record<string, string | number>
  /** The traces that it links to. */
  links: string[]
  isError: boolean
}

const readFields = (bytes: Bytes): Field[] => {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  const fields: Field[] = []
  let at = 0
  const readVarint = (): bigint => {
    let value = 0n
    for (let shift = 0n; ; shift += 7n) {
      const byte = bytes[at++]!
      value |= BigInt(byte & 127) << shift
      if (byte < 128) return value
    }
  }
  while (at < bytes.length) {
    const tag = Number(readVarint())
    const [number, type] = [tag >> 3, tag & 7]
    if (type === 0) fields.push({ number, value: readVarint() })
    else if (type === 2) {
      const length = Number(readVarint())
      fields.push({ number, value: bytes.subarray(at, (at += length)) })
    } else {
      const size = type === 1 ? 8 : 4
      fields.push({
        number,
        value: size === 8 ? view.getBigUint64(at, true) : BigInt(view.getUint32(at, true)),
      })
      at += size
    }
  }
  return fields
}

const listBytes = (bytes: Bytes, number: number): Bytes[] =>
  readFields(bytes).flatMap((field) =>
    field.number === number && typeof field.value !== 'bigint' ? [field.value] : [],
  )

const readBytes = (bytes: Bytes, number: number): Bytes => listBytes(bytes, number)[0] ?? new Uint8Array()

const readText = (bytes: Bytes, number: number): string => Buffer.from(readBytes(bytes, number)).toString()

const readHex = (bytes: Bytes, number: number): string =>
  Buffer.from(readBytes(bytes, number)).toString('hex')

const readNumber = (bytes: Bytes, number: number): bigint =>
  (readFields(bytes).find((field) => field.number === number)?.value as bigint | undefined) ?? 0n

const readAttributes = (bytes: Bytes, number: number): ReceivedSpan['attributes'] =>
  Object.fromEntries(
    listBytes(bytes, number).map((pair) => {
      const [value] = readFields(readBytes(pair, 2))
      return [
        readText(pair, 1),
        typeof value?.value === 'bigint' ? Number(value.value) : Buffer.from(value?.value ?? []).toString(),
      ]
    }),
  )

const readSpan = (bytes: Bytes): ReceivedSpan => ({
  traceId: readHex(bytes, 1),
  spanId: readHex(bytes, 2),
  parentId: readHex(bytes, 4),
  name: readText(bytes, 5),
  start: readNumber(bytes, 7),
  end: readNumber(bytes, 8),
  attributes: readAttributes(bytes, 9),
  links: listBytes(bytes, 13).map((link) => readHex(link, 1)),
  isError: readNumber(readBytes(bytes, 15), 3) === 2n,
})

/** The members of requests, resources and scopes are in fields of these numbers, for traces and for metrics alike. */
const listRecords = (body: Bytes): Bytes[] =>
  listBytes(body, 1).flatMap((resource) => listBytes(resource, 2).flatMap((scope) => listBytes(scope, 2)))

export type Collector = {
  url: string
  spans: ReceivedSpan[]
  /** Names of metrics. */
  metrics: Set<string>
  /** The resource of what came last. */
  resource: Record<string, string | number>
  close: () => void
}

/** Starts a collector. `answer` resolves when it may answer a request. */
export const startCollector = async (answer: () => Promise<void> = async () => {}): Promise<Collector> => {
  const collector: Collector = { url: '', spans: [], metrics: new Set(), resource: {}, close: () => {} }
  const server = createServer((request, response) => {
    void buffer(request).then(async (body) => {
      collector.resource = readAttributes(readBytes(readBytes(body, 1), 1), 1)
      if (request.url === '/v1/traces') collector.spans.push(...listRecords(body).map(readSpan))
      else for (const metric of listRecords(body)) collector.metrics.add(readText(metric, 1))
      await answer()
      response.end()
    })
  })
  server.listen(0, '127.0.0.1')
  await new Promise((resolve) => server.once('listening', resolve))
  collector.url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  collector.close = () => {
    server.closeAllConnections()
    server.close()
  }
  return collector
}
