import { isObject } from '../../../catalog/values.ts'
import { isNonEmptyText } from './call.ts'
import { invalidTemplate, invalidParameter } from './errors.ts'
import {
  containsEmoji,
  containsNewline,
  containsWideSpace,
  isBlankText,
  containsVariable,
  readTemplateText,
  requireLength,
  requireVariables,
  showsNothing,
  type TemplateText,
  countTextWords,
} from './template-texts.ts'

type Part = Record<string, unknown>

const MAX_BODY_LENGTH = 1024
const MAX_CARD_BODY_LENGTH = 160
const MAX_HEADER_LENGTH = 60
const MAX_FOOTER_LENGTH = 60

const BAD_BODY = 'Message template body is incorrect'
const BAD_HEADER = 'Message header format is incorrect'
const BAD_FOOTER = 'Message footer format is incorrect'
const MISSING_FIELDS = 'Message template "components" param is missing expected field(s)'

/** Checks that a body has one sample for each variable, and that each could be sent. */
const checkSamples = (samples: unknown, count: number, named: boolean): void => {
  if (samples === undefined && count === 0) return
  const texts = Array.isArray(samples)
    ? samples.map((s: unknown) => (named && isObject(s) ? s.example : s))
    : []
  if (texts.length !== count || texts.some(isBlankText)) {
    throw invalidTemplate(
      2388043,
      MISSING_FIELDS,
      `component of type BODY is missing expected field(s) (example): ${count} needed, one for each variable`,
    )
  }
  if (texts.some((t) => containsWideSpace(t as string)))
    throw invalidTemplate(
      2388072,
      BAD_BODY,
      "Sample values can't have new lines, tabs or more than four spaces in a row.",
    )
}

const samplesOf = (body: Part, named: boolean): unknown => {
  if (!isObject(body.example)) return undefined
  if (named) return body.example.body_text_named_params
  const rows = body.example.body_text
  return Array.isArray(rows) ? (rows[0] ?? []) : rows
}

const requireTextAtEdges = ({ pieces, variables }: TemplateText): void => {
  if (variables.length > 0 && (showsNothing(pieces[0]) || showsNothing(pieces.at(-1)))) {
    throw invalidTemplate(
      2388299,
      "Variables can't be at the start or end of the template",
      'Leading or trailing params are not allowed.',
    )
  }
}

/** Checks the body text; that of a carousel card (`card`) may be short for its variables. */
export const checkBodyText = (body: Part, named: boolean, card = false): void => {
  if (typeof body.text !== 'string' || isBlankText(body.text))
    throw invalidTemplate(2388072, 'Message template body is missing', 'The body of a template needs text.')
  requireLength(body.text, card ? MAX_CARD_BODY_LENGTH : MAX_BODY_LENGTH, 'The body')
  const text = readTemplateText(body.text, named)
  const { length: count } = requireVariables(text, named, 2388072, 'Invalid parameters')
  requireTextAtEdges(text)
  if (!card && count > 0 && countTextWords(text) < 2 * count + 1) {
    throw invalidTemplate(
      2388293,
      'This template has too many variables for its length',
      'Reduce the number of variables or increase the message length.',
    )
  }
  checkSamples(samplesOf(body, named), count, named)
}

/** Checks the body; the provider writes the text of an authentication template itself. */
export const checkBody = (body: Part, authentication: boolean, named: boolean): void => {
  const { add_security_recommendation: recommendation } = body
  if (recommendation !== undefined && typeof recommendation !== 'boolean')
    throw invalidParameter('Param add_security_recommendation must be a boolean.')
  if (!authentication) {
    if (recommendation === true)
      throw invalidTemplate(
        2388072,
        BAD_BODY,
        'Only authentication templates can have a security recommendation.',
      )
    return checkBodyText(body, named)
  }
  if (!isBlankText(body.text))
    throw invalidTemplate(
      2388072,
      BAD_BODY,
      "The body of an authentication template can't have text of its own.",
    )
  const samples = samplesOf(body, named)
  if (samples !== undefined && !(Array.isArray(samples) && samples.length === 0))
    throw invalidTemplate(2388072, BAD_BODY, 'The body of an authentication template has no samples.')
}

const FORMATS = ['TEXT', 'IMAGE', 'VIDEO', 'DOCUMENT', 'LOCATION', 'PRODUCT', 'GIF']
const MEDIA = ['IMAGE', 'VIDEO', 'DOCUMENT', 'GIF']

const missingHeaderField = (what: string) =>
  invalidTemplate(2388043, MISSING_FIELDS, `component of type HEADER is missing expected field(s) (${what})`)

const checkHeaderText = (header: Part, named: boolean): void => {
  if (typeof header.text !== 'string' || isBlankText(header.text)) throw missingHeaderField('text')
  requireLength(header.text, MAX_HEADER_LENGTH, 'The header')
  const text = readTemplateText(header.text, named)
  if (text.pieces.some((piece) => /[*_~`]/.test(piece) || containsNewline(piece) || containsEmoji(piece))) {
    throw invalidTemplate(
      2388047,
      BAD_HEADER,
      "The message header can't have new lines, formatting characters, emojis or asterisks.",
    )
  }
  requireVariables(text, named, 2388047, BAD_HEADER)
  if (text.variables.length > 1)
    throw invalidTemplate(2388047, BAD_HEADER, 'The message header can have one variable at most.')
  if (text.variables.length === 0) return
  const given = isObject(header.example)
    ? named
      ? header.example.header_text_named_params
      : header.example.header_text
    : undefined
  const [sample] = Array.isArray(given)
    ? given.map((s: unknown) => (named && isObject(s) ? s.example : s))
    : []
  if (isBlankText(sample)) throw missingHeaderField('example')
  if (containsWideSpace(sample as string))
    throw invalidTemplate(
      2388047,
      BAD_HEADER,
      "Sample values can't have new lines, tabs or more than four spaces in a row.",
    )
}

export const checkHeader = (header: Part, named: boolean): void => {
  const format = String(header.format).toUpperCase()
  if (!FORMATS.includes(format))
    throw invalidParameter(`Param components[..]['format'] must be one of {${FORMATS.join(', ')}}.`)
  if (format === 'TEXT') return checkHeaderText(header, named)
  if (!MEDIA.includes(format)) return
  const handles = isObject(header.example) ? header.example.header_handle : undefined
  if (!Array.isArray(handles) || isBlankText(handles[0])) throw missingHeaderField('example')
}

export const checkFooter = (footer: Part, authentication: boolean): void => {
  const { code_expiration_minutes: minutes, text } = footer
  if (authentication) {
    if (!isBlankText(text))
      throw invalidTemplate(
        2388073,
        BAD_FOOTER,
        "The footer of an authentication template can't have text of its own.",
      )
    if (!Number.isInteger(minutes) || (minutes as number) < 1 || (minutes as number) > 90)
      throw invalidTemplate(
        2388073,
        BAD_FOOTER,
        'code_expiration_minutes must be a whole number from 1 to 90.',
      )
    return
  }
  if (minutes !== undefined)
    throw invalidTemplate(2388073, BAD_FOOTER, 'Only authentication templates have an expiration.')
  if (!isNonEmptyText(text) || isBlankText(text))
    throw invalidTemplate(2388073, BAD_FOOTER, 'The footer needs text.')
  requireLength(text, MAX_FOOTER_LENGTH, 'The footer')
  if (containsVariable(text) || containsNewline(text) || containsEmoji(text))
    throw invalidTemplate(
      2388073,
      BAD_FOOTER,
      "The message footer can't have variables, new lines or emojis.",
    )
}
