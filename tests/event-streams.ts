/**
 * One server-sent event with the id 7 in the forms that the standard allows (HTML, "Server-sent events"), as
 * the chunks of a response body. Each form takes the JSON text of the event's data.
 */
export const eventStreams: Readonly<Record<string, (json: string) => Buffer[]>> = {
  'lines that end with \\r\\n': (json) => [Buffer.from(`id: 7\r\ndata: ${json}\r\n\r\n`)],
  'lines that end with \\r': (json) => [Buffer.from(`id: 7\rdata: ${json}\r\r`)],
  'fields without a space after the colon': (json) => [Buffer.from(`id:7\ndata:${json}\n\n`)],
  'data of several lines': (json) => {
    const lines = JSON.stringify(JSON.parse(json), undefined, 1).split('\n')
    return [Buffer.from(`id: 7\n${lines.map((line) => `data: ${line}\n`).join('')}\n`)]
  },
  'an event split over chunks': (json) =>
    split(Buffer.from(`: comment\r\n\r\nid: 7\r\ndata: ${json}\r\n\r\n`), 7),
  'a line break split over chunks': (json) => [
    Buffer.from(`id: 7\r`),
    Buffer.from(`\ndata: ${json}\r`),
    Buffer.from('\n\r'),
    Buffer.from('\n'),
  ],
  'multi-byte characters split over chunks': (json) => split(Buffer.from(`id: 7\ndata: ${json}\n\n`), 1),
}

const split = (bytes: Buffer, size: number): Buffer[] =>
  Array.from({ length: Math.ceil(bytes.length / size) }, (_, i) => bytes.subarray(i * size, (i + 1) * size))

/** A `text/event-stream` response whose body arrives in exactly these chunks. */
export const eventStreamResponse = (chunks: readonly Buffer[]): Response =>
  new Response(ReadableStream.from(chunks), { headers: { 'content-type': 'text/event-stream' } })
