import type { CommandSpec } from '../cli/manifest.ts'

// What the command line adds to the commands of some operations: files, and following.

const format = { flag: '--format', value: 'csv|ndjson', enum: ['csv', 'ndjson'] }

/** Creates `contacts export`: all pages of the search, formatted for a spreadsheet or a program. */
const createExportCommand = (search: CommandSpec): CommandSpec => ({
  ...search,
  verb: 'export',
  summary: 'Export all matching contacts in full, as CSV or as one JSON object per line',
  about:
    'Takes the conditions of `contacts search`. Nothing is written until all pages have arrived. Custom ' +
    'fields are CSV columns named `attributes.<key>`; a cell that a spreadsheet would run as a formula is ' +
    'prefixed with an apostrophe, and tags and groups with a comma in their name are quoted. `contacts ' +
    'import` reads the export.',
  fields: search.fields.filter((f) => !['detail', 'limit', 'cursor'].includes(f.name)),
  own: [
    { ...format, about: 'Output format (default: csv).' },
    {
      flag: '--output',
      value: 'file',
      about: 'Write to this file instead of standard output; it appears once it is complete.',
    },
  ],
  examples: [
    {
      title: 'Export starred contacts for a spreadsheet',
      command: 'wcrm contacts export --starred --output starred.csv',
    },
  ],
})

/** Extends `contacts import` by a file argument; a file is sent in batches. */
const createImportCommand = (spec: CommandSpec): CommandSpec => ({
  ...spec,
  summary: 'Create or update contacts from a file, or up to 500 in one call',
  about:
    `${spec.about} A file is sent in batches of 500 rows; no batch is applied twice. The first line of a ` +
    'CSV file names the columns: phone, external_id, name, email, dnd, starred, metadata (JSON), ' +
    'tags, groups (names or ids), `attributes.<key>`, ' +
    'or the key or label of a custom field. Tags and groups are separated by `,` or `;`. Empty cells change ' +
    'nothing. In a dry run each batch is checked separately: a phone number in two batches is counted in ' +
    'both.',
  fields: spec.fields.map(({ required: _required, ...field }) => field),
  word: {
    name: 'file',
    about:
      'CSV (separated by comma, semicolon or tab) or one JSON object per line, in UTF-8; - reads standard ' +
      'input.',
  },
  own: [
    { ...format, about: 'File format (default: detected from the name or the first character).' },
    {
      flag: '--map',
      value: 'column=field',
      repeats: true,
      about: 'Map a column to a field, as in "City=attributes.city"; may be repeated.',
    },
    { flag: '--ignore', value: 'column', repeats: true, about: 'Ignore a column; may be repeated.' },
    { flag: '--create-groups', about: 'Create missing groups.' },
    { flag: '--clear-empty', about: 'Empty cells clear the email address and custom values.' },
    {
      flag: '--failures',
      value: 'file',
      about: 'Write failed rows to this file as {line, row, code, message, errors}, one per line.',
    },
    { flag: '--resume', about: 'Continue an interrupted import of this file.' },
  ],
  examples: [
    {
      title: 'Dry run of a file',
      command: 'wcrm contacts import people.csv --map "Town=attributes.city" --dry-run',
    },
    {
      title: 'Import the corrected failed rows',
      command: 'jq -c .row failed.ndjson | wcrm contacts import -',
    },
    ...spec.examples,
  ],
})

/** Extends `events list` by `--follow`. */
const createFollowCommand = (spec: CommandSpec): CommandSpec => ({
  ...spec,
  about:
    'Prints a page, oldest first; the next page starts after its last id. With --follow it keeps running ' +
    'and prints each new event on a line of its own, as JSON with --json. After a lost connection it ' +
    'reconnects and resumes after the last event. Ctrl-C stops it.',
  own: [
    { flag: '--follow', about: 'Keep running and print new events.' },
    {
      flag: '--since',
      value: 'start',
      about: 'now, the id of an event, or a duration such as 1h: s, m, h or d.',
    },
  ],
  examples: [
    ...spec.examples,
    {
      title: 'Print incoming messages',
      command: 'wcrm events list --follow --types message.received --json | jq .data.message.text',
    },
  ],
})

/** Extends a command that shows a file by `--output`. */
const createFileCommand = (spec: CommandSpec, example: CommandSpec['examples'][number]): CommandSpec => ({
  ...spec,
  own: [
    {
      flag: '--output',
      value: 'file',
      about:
        'Save the bytes in this file, which appears once it is complete; - writes them to standard output.',
    },
  ],
  examples: [...spec.examples, example],
})

/** Operations that show a file, each with an example of how it is saved. */
const fileExamples: Readonly<Record<string, CommandSpec['examples'][number]>> = {
  messaging_get_media: { title: 'Save a photo', command: 'wcrm messages media 901 --output photo.jpg' },
  crm_get_export: { title: 'Save the file', command: 'wcrm exports get 1 --output person.zip' },
}

/** Returns the commands of an operation: the command itself, with what the command line adds to it, and an export. */
export const extendCommand = (spec: CommandSpec): CommandSpec[] =>
  spec.operation === 'events_list'
    ? [createFollowCommand(spec)]
    : spec.operation === 'crm_search_contacts'
      ? [spec, createExportCommand(spec)]
      : fileExamples[spec.operation]
        ? [createFileCommand(spec, fileExamples[spec.operation]!)]
        : [spec.operation === 'crm_import_contacts' ? createImportCommand(spec) : spec]
