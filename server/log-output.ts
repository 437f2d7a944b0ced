import { write, writeSync } from 'node:fs'
import type { DestinationStream } from 'pino'

/** Lines wait as long for others: one write of many lines costs what one of a single line does. */
const GATHER_MS = 100

/** Characters that wait at most while nobody takes them, such as a full pipe. */
const MAX_WAITING = 4 * 1024 * 1024

/** Processes may share a pipe, in which larger writes can be torn apart (PIPE_BUF of Linux, bytes). */
const MAX_WRITE = 4096

/** A write that takes longer waits for a reader who may never read. */
const STALLED_MS = 1000

/** Pino's level `warn`: lines from it on are written at once. */
const URGENT_LEVEL = 40

/** What pino writes its lines to. It sets `lastLevel` before each line, for the symbol. */
export type LogOutput = DestinationStream & {
  [needsLevel]: true
  lastLevel: number
  /** Writes what waits before the process ends. */
  flushSync: () => void
}

const needsLevel: unique symbol = Symbol.for('pino.metadata') as never

const formatLost = (lines: number): string => {
  const msg = 'Lines of the log were lost: they could not be written'
  return `${JSON.stringify({ level: URGENT_LEVEL, time: Date.now(), lines, msg })}\n`
}

const countLines = (text: Buffer): number => text.reduce((count, byte) => count + (byte === 10 ? 1 : 0), 0)

/** Of a pipe, which Node makes non-blocking when `process.stderr` is first used: else a write would keep a thread. */
const isFull = (error: unknown): boolean => (error as NodeJS.ErrnoException).code === 'EAGAIN'

/** Lines that wait to be written, and the number of those that never will be. */
const createQueue = (maxWaiting: number) => {
  let lines: string[] = []
  let length = 0
  let lost = 0
  let isCut = false
  return {
    length: () => length,
    add: (line: string): void => {
      if (length + line.length > maxWaiting) {
        lost++
        return
      }
      lines.push(line)
      length += line.length
    },
    /** Returns what the next write is of. */
    take: (): { text: Buffer; lines: number } => {
      const taken = [isCut ? '\n' : '', lost > 0 ? formatLost(lost) : '']
      let size = 0
      let count = 0
      for (const line of lines) {
        size += Buffer.byteLength(line)
        if (size > MAX_WRITE && count > 0) break
        taken.push(line)
        length -= line.length
        count++
      }
      const all = lost + count
      lines = lines.slice(count)
      lost = 0
      isCut = false
      return { text: Buffer.from(taken.join('')), lines: all }
    },
    /** A write failed, with as many lines, among them those that it said were lost. */
    lose: (count: number): void => {
      lost += count
    },
    /** The rest of a write failed, of which a part was written, perhaps not to the end of a line. */
    loseRest: (rest: Buffer): void => {
      lost += countLines(rest)
      isCut = true
    },
  }
}

/**
 * Writes lines to a file descriptor without waiting for it. A log that cannot be written, on a full disk or to a reader
 * who has stopped reading, costs lines, which are counted in a line of their own later; never a request, the process,
 * or its memory. (pino's own destination throws what a write fails with, and at exit repeats such a write for ever.)
 */
export const createLogOutput = (fd: number, maxWaiting = MAX_WAITING): LogOutput => {
  const queue = createQueue(maxWaiting)
  let timer: NodeJS.Timeout | undefined
  let writingSince: number | undefined

  /** `lines`: of the whole write; undefined once a part of it was written. */
  const writeRest = (rest: Buffer, lines: number | undefined): void =>
    write(fd, rest, (error, written) => {
      if (error && isFull(error)) {
        setTimeout(() => writeRest(rest, lines), GATHER_MS).unref()
        return
      }
      if (!error && written < rest.length) {
        writeRest(rest.subarray(written), undefined)
        return
      }
      if (error && lines === undefined) queue.loseRest(rest)
      else if (error) queue.lose(lines!)
      writingSince = undefined
      if (queue.length() >= MAX_WRITE) flush()
      else if (queue.length() > 0) schedule()
    })

  const flush = (): void => {
    clearTimeout(timer)
    timer = undefined
    if (writingSince !== undefined) return
    writingSince = performance.now()
    const { text, lines } = queue.take()
    writeRest(text, lines)
  }

  const schedule = (): void => {
    timer ??= setTimeout(flush, GATHER_MS).unref()
  }

  const output: LogOutput = {
    [needsLevel]: true,
    lastLevel: 0,
    write: (line) => {
      queue.add(line)
      if (output.lastLevel >= URGENT_LEVEL || queue.length() >= MAX_WRITE) flush()
      else schedule()
    },
    flushSync: () => {
      if (writingSince !== undefined && performance.now() - writingSince > STALLED_MS) return
      try {
        while (queue.length() > 0)
          for (let rest = queue.take().text; rest.length > 0;) rest = rest.subarray(writeSync(fd, rest))
      } catch {
        // Nothing is left to say it with.
      }
    },
  }
  process.once('exit', output.flushSync)
  return output
}
