import { parseMediaLocation } from '../../server/domains/media/location.ts'
import { usageError } from '../error.ts'
import { createProgressLine } from '../result.ts'
import { stringFlag } from './flags.ts'
import { openWorkingStore } from './working-store.ts'
import type { AdminFlags, AdminGroup } from './verb.ts'
import { setTimeout as pause } from 'node:timers/promises'
import { digestFile, type MediaStore } from '../../server/media-store.ts'
import type { Db } from '../../storage/database.ts'
import { isMediaKept, listKeptMedia, type KeptFile } from '../../storage/messages/media.ts'
import { withRetries } from './retries.ts'

const storeFlag = async (flags: AdminFlags, name: 'from' | 'to') => {
  try {
    return await openWorkingStore(parseMediaLocation(stringFlag(flags, name)!))
  } catch (error) {
    throw usageError(`--${name}: ${(error as Error).message}`, `--${name}`)
  }
}

export const mediaGroup: AdminGroup = {
  name: 'media',
  summary: 'Received files',
  verbs: [
    {
      name: 'move',
      access: 'read',
      summary: 'Move the received files to another store, such as from a folder to S3 or back',
      about:
        'Servers can run meanwhile, with the new store in WCRM_MEDIA and the old one in ' +
        'WCRM_MEDIA_PREVIOUS. Each file is copied, read back and compared by size and SHA-256 before it is ' +
        'removed from the old store. The command can be interrupted and repeated. It exits with 1 if files ' +
        'are missing or damaged; they are named and stay.',
      scoped: false,
      required: [
        ['--from <store>', 'folder, or s3://BUCKET/PREFIX?…, as in WCRM_MEDIA'],
        ['--to <store>', 'the same'],
      ],
      options: [['--keep', 'leave the files in the old store, too']],
      run: async (session, flags) => {
        const [given, wanted] = [stringFlag(flags, 'from')!, stringFlag(flags, 'to')!]
        if (given === wanted) throw usageError('--from and --to are the same store.', '--to')
        const db = await session.db()
        const [from, to] = [await storeFlag(flags, 'from'), await storeFlag(flags, 'to')]
        const line = createProgressLine(session.io, 'files')
        const counts = await moveMedia({
          db,
          from,
          to,
          keep: flags['keep'] === true,
          onFiles: line.update,
          warn: (message) => session.io.stderr.write(`${message}\n`),
        }).finally(line.end)
        return { from: from.name, to: to.name, ...counts }
      },
      exitCode: ({ missing, damaged }) => (missing === 0 && damaged === 0 ? 0 : 1),
    },
  ],
}

/** Files by what became of them. `damaged` ones are not what the database says, and stay where they are. */
type MoveCounts = {
  moved: number
  bytes: number
  already: number
  missing: number
  damaged: number
  deleted: number
}

type MoveOptions = {
  db: Db
  from: MediaStore
  to: MediaStore
  /** Leaves the files where they were, too. */
  keep: boolean
  onFiles: (n: number) => void
  /** Says which file is missing or damaged. */
  warn: (message: string) => void
}

const PAGE_SIZE = 500
const CONCURRENCY = 8
/** A server may have found a file there and be about to open it. */
const GRACE_MS = 10_000

/** Removes files some seconds after they were given. */
const createLateRemoval = (store: MediaStore, graceMs: number) => {
  const waiting: { key: string; at: number }[] = []
  const removeDue = async (isEnd: boolean): Promise<void> => {
    while (waiting.length > 0) {
      const { key, at } = waiting[0]!
      const left = at - Date.now()
      if (left > 0 && !isEnd) return
      if (left > 0) await pause(left)
      await withRetries(() => store.remove(key))
      waiting.shift()
    }
  }
  return { add: (key: string) => void waiting.push({ key, at: Date.now() + graceMs }), removeDue }
}

/**
 * Moves the files that the database names. Each is copied, read back and compared by size and SHA-256 before it is
 * removed where it was. Whatever ends the command, the next run continues.
 */
export const moveMedia = async (options: MoveOptions, graceMs = GRACE_MS): Promise<MoveCounts> => {
  const { db, from, keep, onFiles } = options
  const counts: MoveCounts = { moved: 0, bytes: 0, already: 0, missing: 0, damaged: 0, deleted: 0 }
  const removal = createLateRemoval(from, graceMs)
  let files = 0
  for (let after: KeptFile | undefined; ;) {
    const page = await listKeptMedia(db, after, PAGE_SIZE)
    const queue = [...page]
    const work = async (): Promise<void> => {
      for (let file = queue.shift(); file; file = queue.shift()) {
        if ((await moveFile(options, counts, file)) && !keep) removal.add(file.key)
        onFiles(++files)
      }
    }
    await Promise.all(Array.from({ length: CONCURRENCY }, work))
    await removal.removeDue(false)
    if (page.length < PAGE_SIZE) break
    after = page.at(-1)
  }
  await removal.removeDue(true)
  return counts
}

/** Size and SHA-256 (in hex) of a file; undefined when there is none. */
const digestIn = async (
  store: MediaStore,
  key: string,
): Promise<{ size: number; sha256: string } | undefined> =>
  await withRetries(async () => {
    const file = await store.read(key)
    if (!file) return undefined
    const { size, sha256 } = await digestFile(file)
    return { size, sha256: sha256.toString('hex') }
  })

/** Returns false when the file is gone. */
const copyFile = (from: MediaStore, to: MediaStore, key: string): Promise<boolean> =>
  withRetries(async () => {
    const source = await from.read(key)
    if (source) await to.write(key, source.content)
    return source !== undefined
  })

/** Returns whether the file is to be removed where it was. */
const moveFile = async (
  { db, from, to, warn }: MoveOptions,
  counts: MoveCounts,
  file: KeptFile,
): Promise<boolean> => {
  const { key } = file
  const giveUp = (kind: 'missing' | 'damaged', message: string): false => {
    counts[kind]++
    warn(message)
    return false
  }
  const there = await withRetries(() => to.find(key))
  const before = await digestIn(from, key)
  if (!before && there) {
    counts.already++
    return false
  }
  const expected = { size: Number(file.size ?? before?.size), sha256: file.sha256 ?? before?.sha256 }
  const isExpected = (found: typeof before): boolean =>
    found?.size === expected.size && found.sha256 === expected.sha256
  if (before && !isExpected(before))
    return giveUp('damaged', `The file ${key} is damaged, and stays in ${from.name}.`)
  if (there && isExpected(await digestIn(to, key))) {
    counts.already++
    return true
  }
  const isCopied = before !== undefined && (await copyFile(from, to, key))
  const after = isCopied ? await digestIn(to, key) : undefined
  // A server marks a message as deleted, then removes its file from both stores: perhaps before it was copied.
  if (!(await isMediaKept(db, file))) {
    await withRetries(() => to.remove(key))
    counts.deleted++
    return true
  }
  if (!isCopied) return giveUp('missing', `The file ${key} is in neither store.`)
  if (!isExpected(after)) throw new Error(`The file ${key} cannot be read back from ${to.name}.`)
  counts.moved++
  counts.bytes += expected.size
  return true
}
