import { parseMediaLocation } from '../../server/media/location.ts'
import { usageError } from '../error.ts'
import { createProgressLine } from '../result.ts'
import { stringFlag } from './flags.ts'
import { openWorkingStore } from './working-store.ts'
import { moveMedia } from './media-move.ts'
import type { AdminFlags, AdminGroup } from './verb.ts'

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
