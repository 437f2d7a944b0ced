import {
  codeExpiration,
  countWords,
  findBadSpace,
  FORMATTING,
  hasEmoji,
  hasNewline,
  hasVariable,
  isInvisible,
  maxLengths,
  minWords,
  sampleTypes,
} from '../../../catalog/templates/rules.ts'
import { isBlank, isObject } from '../../../catalog/values.ts'
import { isNonEmptyText } from './call.ts'
import { invalidTemplate, invalidParameter } from './errors.ts'
import { readTemplateText, requireLength, requireVariables, type TemplateText } from './template-texts.ts'

type Part = Record<string, unknown>

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
  if (texts.length !== count || texts.some(isBlank)) {
    throw invalidTemplate(
      2388043,
      MISSING_FIELDS,
      `component of type BODY is missing expected field(s) (example): ${count} needed, one for each variable`,
    )
  }
  if (texts.some((t) => findBadSpace(t as string) !== undefined))
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
  if (variables.length > 0 && (isInvisible(pieces[0]!) || isInvisible(pieces.at(-1)!))) {
    throw invalidTemplate(
      2388299,
      "Variables can't be at the start or end of the template",
      'Leading or trailing params are not allowed.',
    )
  }
}

/** Checks the body text; that of a carousel card (`card`) may be short for its variables. */
export const checkBodyText = (body: Part, named: boolean, card = false): void => {
  if (typeof body.text !== 'string' || isBlank(body.text))
    throw invalidTemplate(2388072, 'Message template body is missing', 'The body of a template needs text.')
  requireLength(body.text, card ? maxLengths.cardBody : maxLengths.body, 'The body')
  const text = readTemplateText(body.text, named)
  const { length: count } = requireVariables(text, named, 2388072, 'Invalid parameters')
  requireTextAtEdges(text)
  if (!card && count > 0 && countWords(text.pieces.join(' variable '), minWords(count)) < minWords(count)) {
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
  if (!isBlank(body.text))
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

const missingHeaderField = (what: string) =>
  invalidTemplate(2388043, MISSING_FIELDS, `component of type HEADER is missing expected field(s) (${what})`)

const checkHeaderText = (header: Part, named: boolean): void => {
  if (typeof header.text !== 'string' || isBlank(header.text)) throw missingHeaderField('text')
  requireLength(header.text, maxLengths.header, 'The header')
  const text = readTemplateText(header.text, named)
  if (text.pieces.some((piece) => FORMATTING.test(piece) || hasNewline(piece) || hasEmoji(piece))) {
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
  if (isBlank(sample)) throw missingHeaderField('example')
  if (findBadSpace(sample as string) !== undefined)
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
  if (!Object.hasOwn(sampleTypes, format)) return
  const handles = isObject(header.example) ? header.example.header_handle : undefined
  if (!Array.isArray(handles) || isBlank(handles[0])) throw missingHeaderField('example')
}

export const checkFooter = (footer: Part, authentication: boolean): void => {
  const { code_expiration_minutes: minutes, text } = footer
  if (authentication) {
    if (!isBlank(text))
      throw invalidTemplate(
        2388073,
        BAD_FOOTER,
        "The footer of an authentication template can't have text of its own.",
      )
    if (
      !Number.isInteger(minutes) ||
      (minutes as number) < codeExpiration.min ||
      (minutes as number) > codeExpiration.max
    )
      throw invalidTemplate(
        2388073,
        BAD_FOOTER,
        `code_expiration_minutes must be a whole number from ${codeExpiration.min} to ${codeExpiration.max}.`,
      )
    return
  }
  if (minutes !== undefined)
    throw invalidTemplate(2388073, BAD_FOOTER, 'Only authentication templates have an expiration.')
  if (!isNonEmptyText(text) || isBlank(text))
    throw invalidTemplate(2388073, BAD_FOOTER, 'The footer needs text.')
  requireLength(text, maxLengths.footer, 'The footer')
  if (hasVariable(text) || hasNewline(text) || hasEmoji(text))
    throw invalidTemplate(
      2388073,
      BAD_FOOTER,
      "The message footer can't have variables, new lines or emojis.",
    )
}
