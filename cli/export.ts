import { createReadStream, existsSync, statSync } from 'node:fs'
import type { FileHandle } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, resolve } from 'node:path'
import { pipeline } from 'node:stream/promises'
import { createContactLines, hasTruncatedValue, type ShownContact } from '../catalog/contacts/export-lines.ts'
import { usageError } from './error.ts'
import { fetchAllPages, fetchPages } from './pages.ts'
import type { ServerConnection } from './remote.ts'
import { nameFile, openUnnamedFile } from './unnamed-file.ts'
import { describeSpool, naming } from './write-error.ts'

type ExportRow = ShownContact

/** Yields the text of an export page by page. */
async function* renderExport(to: ServerConnection, input: ExportRow, format: string): AsyncGenerator<string> {
  const { io } = to
  const fields =
    format === 'csv'
      ? ((await fetchAllPages(to, 'crm_list_custom_fields', { limit: 100 })).value['data'] as {
          key: string
        }[])
      : []
  const { header, line } = createContactLines(
    format === 'csv' ? 'csv' : 'jsonl',
    fields.map(({ key }) => key),
  )
  yield header
  let firstPage: ExportRow | undefined
  let truncated = 0
  for await (const { value: page } of fetchPages(to, 'crm_search_contacts', {
    ...input,
    detail: 'full',
    limit: 100,
  })) {
    const rows = page['data'] as ExportRow[]
    const separator = firstPage === undefined ? '{"data":[' : rows.length > 0 ? ',' : ''
    truncated += rows.filter(hasTruncatedValue).length
    if (format === 'json') yield separator + rows.map((row) => JSON.stringify(row)).join(',')
    else yield rows.map(line).join('')
    firstPage ??= page
  }
  const { data: _data, ...envelope } = firstPage!
  if (format === 'json') yield `],${JSON.stringify({ ...envelope, next_cursor: null }).slice(1)}\n`
  if (truncated > 0)
    io.stderr.write(
      `${truncated} contacts have truncated values: ` +
        'importing this export would truncate the stored values too.\n',
    )
}

/** Returns the folder of the output file. */
export const outputFolder = (output: string): string => {
  if (existsSync(output) && !statSync(output).isFile())
    throw usageError(
      `${output} is not a file.`,
      '--output',
      'Leave --output out to write to standard output.',
    )
  return dirname(resolve(output))
}

/** Opens the file that holds the export until it is complete. */
export const openSpool = async (folder: string): Promise<FileHandle> => {
  try {
    return await openUnnamedFile(folder)
  } catch (error) {
    throw usageError(
      `Cannot write to ${folder}: ${(error as NodeJS.ErrnoException).code ?? 'unknown'}.`,
      '--output',
      'Name a file in a folder that can be written.',
    )
  }
}

/**
 * Exports all matching contacts. Pages go to a file without a name, which is printed, or given the name of
 * the output file, once it is complete: no part of it is left behind, however the command ends. Returns the
 * exit code.
 */
export const exportRows = async (
  to: ServerConnection,
  input: ExportRow,
  { format = 'csv', output: given }: { format?: string | undefined; output?: string | undefined },
): Promise<number> => {
  const { io } = to
  const output = given === '-' ? undefined : given
  if (!['csv', 'ndjson', 'json'].includes(format))
    throw usageError(`--format must be csv or ndjson, not "${format}".`, '--format')
  const spool = await openSpool(output === undefined ? tmpdir() : outputFolder(output))
  const { fd } = spool
  try {
    await naming(describeSpool(output), spool.writeFile(renderExport(to, input, format)))
    if (output === undefined)
      await pipeline(createReadStream('', { fd, start: 0, autoClose: false }), io.stdout, { end: false })
    else await naming(output, nameFile(spool, output))
    return 0
  } finally {
    await spool.close()
  }
}
