/**
 * The provider's rules for templates, as far as they are numbers, lists and forms: lint checks drafts by them, the
 * sandbox what it is sent, and sends the values. Each has its own way of reading a template: the sandbox reads what
 * the provider's protocol allows, with named variables and kinds of buttons that no draft has, and parses addresses,
 * phone numbers and variables itself, so that it finds what lint overlooks.
 */

export const templateCategories = ['MARKETING', 'UTILITY', 'AUTHENTICATION'] as const

/** In Unicode code points. */
export const maxLengths = {
  name: 512,
  header: 60,
  body: 1024,
  bodyWithOffer: 600,
  cardBody: 160,
  footer: 60,
  label: 25,
  buttonUrl: 2000,
  buttonPhone: 20,
  /** A sample; a longer code than `sentCode` is refused in every send. */
  coupon: 20,
  /** A code or coupon in a send, and the coupon of an offer. */
  sentCode: 15,
  offer: 16,
} as const

/** Minutes after which a code expires. */
export const codeExpiration = { min: 1, max: 90 } as const

export const MAX_BUTTONS = 10

/** The maximum number of buttons of a type; quick replies have none. Drafts have no catalogs or products. */
export const maxButtonsByType: Readonly<Record<string, number>> = {
  URL: 2,
  PHONE_NUMBER: 1,
  COPY_CODE: 1,
  FLOW: 1,
  VOICE_CALL: 1,
  OTP: 1,
  CATALOG: 1,
  MPM: 1,
  SPM: 1,
}

/** The provider labels these itself. */
export const unlabelledButtons: readonly string[] = ['COPY_CODE', 'OTP']

/** Hosts of links into the messaging app itself. */
export const chatHosts: readonly string[] = ['wa.me', 'api.whatsapp.com']

export const cardCount = { min: 2, max: 10 } as const
export const MAX_CARD_BUTTONS = 2
export const cardButtonTypes: readonly string[] = ['QUICK_REPLY', 'URL', 'PHONE_NUMBER']
/** The formats of the header of a card, and beside a limited-time offer. */
export const pictureFormats: readonly string[] = ['IMAGE', 'VIDEO']

/** The types of files that may be the sample of a header of this format. Drafts have no GIF. */
export const sampleTypes: Readonly<Record<string, readonly string[]>> = {
  IMAGE: ['image/jpeg', 'image/jpg', 'image/png'],
  VIDEO: ['video/mp4'],
  GIF: ['video/mp4'],
  DOCUMENT: ['application/pdf'],
}

export const TEMPLATE_NAME = /^[a-z0-9_]+$/
export const LANGUAGE_CODE = /^[a-z]{2,3}(?:_[A-Z]{2})?$/
/** Of a button: an international number as the provider takes it, which does not read "00" as "+". */
export const BUTTON_PHONE = /^\+?[1-9][0-9 ()./-]*$/
export const PACKAGE_NAME = /^(?=.{1,224}$)[A-Za-z]\w*(?:\.[A-Za-z]\w*)+$/
export const SIGNATURE_HASH = /^[A-Za-z0-9+/=]{11}$/
/** The characters that make text bold, italic, struck through or monospaced. */
export const FORMATTING = /[*_~`]/

/** The length in Unicode code points. */
export const countCharacters = (text: string): number => {
  let length = 0
  for (let i = 0; i < text.length; i++, length++) if (text.codePointAt(i)! > 0xffff) i++
  return length
}

/** The number of characters above the maximum; 0 when the text fits. */
export const excessLength = (text: string, max: number): number =>
  text.length <= max ? 0 : Math.max(0, countCharacters(text) - max)

/** Pictographs, flags and keycaps, but not the signs ©, ® and ™ or plain digits. */
export const hasEmoji = (text: string): boolean =>
  /(?![©®™])\p{Extended_Pictographic}|\p{Regional_Indicator}|\u20e3/u.test(text)

export const hasNewline = (text: string): boolean => /[\n\r]/.test(text)

/** For texts that may have no variable. */
export const hasVariable = (text: string): boolean => text.includes('{{')

/** Whether a text shows nothing: white space, zero-width, direction and tag characters, blank fillers. */
export const isInvisible = (text: string): boolean =>
  /^[\s\p{Default_Ignorable_Code_Point}\p{Cf}\p{Cc}\u2800]*$/u.test(text)

/** Describes white space that no sample may have; undefined without any. */
export const findBadSpace = (text: string): string | undefined =>
  hasNewline(text)
    ? 'a line break'
    : text.includes('\t')
      ? 'a tab'
      : text.includes('     ')
        ? 'more than four spaces in a row'
        : undefined

/** How many words a text with so many different variables has at least, each variable counted as one. */
export const minWords = (variables: number): number => 2 * variables + 1

const segmenter = new Intl.Segmenter('en', { granularity: 'word' })

/** Counts the words of a text, up to `enough`: more do not matter, and counting takes time. */
export const countWords = (text: string, enough: number): number => {
  let words = 0
  for (const { isWordLike } of segmenter.segment(text)) if (isWordLike && ++words >= enough) break
  return words
}

/** Whether quick replies stand together, before or after the other buttons. */
export const areRepliesTogether = (types: readonly string[]): boolean =>
  types.filter((type, i) => i > 0 && (type === 'QUICK_REPLY') !== (types[i - 1] === 'QUICK_REPLY')).length <=
  1
