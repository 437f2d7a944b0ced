import {
  excessLength,
  findBadSpace,
  FORMATTING,
  hasEmoji,
  hasNewline,
  maxLengths,
  sampleTypes,
} from '../../../../catalog/templates/rules.ts'
import { isBlank } from '../../../../catalog/values.ts'
import { findHandleFault } from '../sample-types.ts'
import { parseVariables } from '../variables.ts'
import { type Draft, noFindings, finding, type LintRule, type LintSubject } from './rule.ts'
import { joinWords, oneLine, quote, suggest, withoutEmoji } from './text.ts'

type Header = NonNullable<Draft['header']>

/** The header, where one is allowed. */
const headerOf = ({ draft, isCode }: LintSubject): Header | undefined =>
  isCode || draft.carousel ? undefined : draft.header

/** The text of a text header, when it is not blank. */
const textOf = (subject: LintSubject): string | undefined => {
  const header = headerOf(subject)
  return header?.format === 'TEXT' && !isBlank(header.text) ? header.text : undefined
}

const sampleOf = (subject: LintSubject): string | undefined => {
  const text = textOf(subject)
  return text !== undefined &&
    parseVariables(text).places.length > 0 &&
    !isBlank(subject.draft.header!.example)
    ? subject.draft.header!.example
    : undefined
}

const isMedia = (format: string): boolean => Object.hasOwn(sampleTypes, format)

/** The number of header variables that a send has to fill. */
export const countHeaderVariables = (subject: LintSubject): number =>
  parseVariables(textOf(subject) ?? '').names.length

const text = (value: string, more: object = {}) => ({
  set: { header: { format: 'TEXT', text: value, ...more } },
})

export const headerRules: readonly LintRule[] = [
  {
    id: 'header.text_required',
    severity: 'error',
    source: 'error_list',
    about: 'A TEXT header has a text.',
    find: (subject) =>
      headerOf(subject)?.format === 'TEXT' && textOf(subject) === undefined
        ? finding('header.text', 'The header has no text.', 'Write header.text, or leave out the header.')
        : noFindings,
    breaks: { set: { header: { format: 'TEXT' } }, at: 'header.text' },
    passes: text('News'),
  },
  {
    id: 'header.text_length',
    severity: 'error',
    source: 'spec',
    about: `At most ${maxLengths.header} characters.`,
    find: (subject) => {
      const over = excessLength(textOf(subject) ?? '', maxLengths.header)
      return over === 0
        ? noFindings
        : finding(
            'header.text',
            `The header has ${maxLengths.header + over} characters; ` +
              `the provider accepts ${maxLengths.header}.`,
            `Shorten it by ${over}.`,
          )
    },
    breaks: { ...text('x'.repeat(61)), at: 'header.text' },
    passes: text('é'.repeat(60)),
  },
  {
    id: 'header.text_characters',
    severity: 'error',
    source: 'error_list',
    about: 'No line breaks, no emoji and none of `*`, `_`, `~` and the backtick.',
    find: (subject) => {
      const given = textOf(subject) ?? ''
      const bad = [
        ...(hasNewline(given) ? ['a line break'] : []),
        ...(hasEmoji(given) ? ['an emoji'] : []),
        ...(FORMATTING.test(given) ? [`the formatting sign ${quote(FORMATTING.exec(given)![0])}`] : []),
      ]
      return bad.length === 0
        ? noFindings
        : finding(
            'header.text',
            `The header contains ${joinWords(bad)}.`,
            suggest(
              oneLine(withoutEmoji(given).replaceAll(/[*_~`]/g, '')),
              'Use only letters, digits and punctuation.',
            ),
          )
    },
    breaks: { ...text('Big *news*'), at: 'header.text' },
    passes: text('Big news ©'),
  },
  {
    id: 'header.variables_form',
    severity: 'error',
    source: 'guidelines',
    about: 'Double braces are only for the variable: `{{1}}`.',
    find: (subject) =>
      parseVariables(textOf(subject) ?? '').leftover
        ? finding(
            'header.text',
            `The header contains double braces that form no variable: ${quote(textOf(subject)!)}.`,
            'Write the variable as {{1}}, or leave out the braces.',
          )
        : noFindings,
    breaks: { ...text('News for {{name}}'), at: 'header.text' },
    passes: text('News for {{1}}', { example: 'Ada' }),
  },
  {
    id: 'header.variables_count',
    severity: 'error',
    source: 'spec',
    about: 'At most one variable, `{{1}}`, once.',
    find: (subject) => {
      const { places } = parseVariables(textOf(subject) ?? '')
      if (places.length === 0 || (places.length === 1 && places[0]!.name === '1')) return noFindings
      return places.length > 1
        ? finding(
            'header.text',
            `The header has ${places.length} variables; it may have one.`,
            'Keep one {{1}}, and write the rest as words or in the body.',
          )
        : finding(
            'header.text',
            'The variable of the header is not {{1}}.',
            suggest(textOf(subject)!.replaceAll(/\{\{\d+\}\}/g, '{{1}}'), 'Write it as {{1}}.'),
          )
    },
    breaks: { ...text('{{1}}: news for {{1}}', { example: 'Ada' }), at: 'header.text' },
    passes: text('News for {{1}}', { example: 'Ada' }),
  },
  {
    id: 'header.sample_missing',
    severity: 'error',
    source: 'error_list',
    about: 'The variable has a sample.',
    find: (subject) =>
      parseVariables(textOf(subject) ?? '').places.length > 0 && sampleOf(subject) === undefined
        ? finding(
            'header.example',
            'The variable of the header has no sample.',
            'Give in header.example what a customer might read there.',
          )
        : noFindings,
    breaks: { ...text('News for {{1}}'), at: 'header.example' },
    passes: text('News for {{1}}', { example: 'Ada' }),
  },
  {
    id: 'header.sample_whitespace',
    severity: 'error',
    source: 'practice',
    about: 'The sample has no line breaks, no tabs and at most four spaces in a row.',
    find: (subject) => {
      const sample = sampleOf(subject) ?? ''
      const bad = findBadSpace(sample)
      return bad === undefined
        ? noFindings
        : finding('header.example', `The sample has ${bad}.`, suggest(oneLine(sample), 'Put it on one line.'))
    },
    breaks: { ...text('News for {{1}}', { example: 'Ada\tL.' }), at: 'header.example' },
    passes: text('News for {{1}}', { example: 'Ada L.' }),
  },
  {
    id: 'header.media_required',
    severity: 'error',
    source: 'error_list',
    about: 'An IMAGE, VIDEO or DOCUMENT header has the handle of an uploaded sample.',
    find: (subject) => {
      const header = headerOf(subject)
      return header && isMedia(header.format) && isBlank(header.media_handle)
        ? finding(
            'header.media_handle',
            `The ${header.format} header has no sample.`,
            'Upload one with messaging_upload_template_sample, and give its media_handle.',
          )
        : noFindings
    },
    breaks: { set: { header: { format: 'IMAGE' } }, at: 'header.media_handle' },
    passes: { set: { header: { format: 'IMAGE', media_handle: '4::aW1hZ2U' } } },
  },
  {
    id: 'header.media_type',
    severity: 'error',
    source: 'practice',
    about:
      'The handle is of an uploaded sample that fits the format: JPEG or PNG, MP4, PDF. ' +
      'Whether it still exists, only the provider knows.',
    find: (subject) => {
      const header = headerOf(subject)
      const handle = header?.media_handle
      const fault = header && !isBlank(handle) ? findHandleFault(header.format, handle!) : undefined
      return fault
        ? finding('header.media_handle', `The media handle ${fault.problem}.`, fault.fix)
        : noFindings
    },
    breaks: {
      set: { header: { format: 'IMAGE', media_handle: '4::dmlkZW8vbXA0:ARa' } },
      at: 'header.media_handle',
    },
    passes: { set: { header: { format: 'VIDEO', media_handle: '4::dmlkZW8vbXA0:ARa' } } },
  },
  {
    id: 'header.unused',
    severity: 'warning',
    source: 'service',
    about: 'No fields that the format does not use; they are ignored.',
    find: (subject) => {
      const header = headerOf(subject)
      if (!header) return noFindings
      const uses =
        header.format === 'TEXT'
          ? ['text', ...(header.text?.includes('{{') ? ['example'] : [])]
          : isMedia(header.format)
            ? ['media_handle']
            : []
      return (['text', 'example', 'media_handle'] as const).flatMap((field) =>
        uses.includes(field) || isBlank(header[field])
          ? noFindings
          : finding(
              `header.${field}`,
              field === 'example' && header.format === 'TEXT'
                ? `A ${header.format} header without a variable does not use ${field}.`
                : `A ${header.format} header does not use ${field}.`,
              `Leave out header.${field}.`,
            ),
      )
    },
    breaks: { set: { header: { format: 'LOCATION', text: 'Our shop' } }, at: 'header.text' },
    passes: { set: { header: { format: 'LOCATION' } } },
  },
]
