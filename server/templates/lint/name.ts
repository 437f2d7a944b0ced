import { nearest } from '../../nearest.ts'
import { languages } from './languages.ts'
import { categories, fine, found, type Rule } from './rule.ts'
import { excess, isBlank, quote, suggest } from './text.ts'

const LONGEST_NAME = 512

/** A name of the allowed characters that says the same. */
const nameFrom = (text: string): string =>
  text
    .normalize('NFKD')
    .replaceAll(/\p{M}/gu, '')
    .replaceAll(/([a-z])([A-Z])/g, '$1_$2')
    .toLowerCase()
    .replaceAll(/[^a-z0-9]+/g, '_')
    .replaceAll(/^_+|_+$/g, '')

/** `PT-br` as `pt_BR`. */
const languageFrom = (text: string): string => {
  const [language = '', region] = text.trim().split(/[-_ ]+/)
  const code =
    region === undefined ? language.toLowerCase() : `${language.toLowerCase()}_${region.toUpperCase()}`
  return languages.includes(code) ? code : (nearest(code, languages) ?? '')
}

const HAS_FORM = /^[a-z]{2,3}(_[A-Z]{2})?$/

/** What no message about an order or an account says. */
const PROMOTIONAL = new RegExp(
  `(?<![\\p{L}\\p{M}\\p{N}])(?:${[
    '\\d+ ?% ?off',
    'sales?',
    'discount(?:s|ed)?',
    'special offer',
    'offers?',
    '(?<!(?:feel|toll|duty|sugar|gluten)[ -])free',
    'buy now',
    'shop now',
    'order now',
    'promo(?: ?codes?)?',
    'promotions?',
    'coupons?',
    'deals?',
    'limited time',
    'ofertas?',
    'descuentos?',
    'rebajas',
    'gratis',
    'compra ahora',
    'descontos?',
    'promoç(?:ão|ões)',
    'promoción',
    'promociones',
    'grátis',
    'compre agora',
    'soldes',
    'remises?',
    'réductions?',
    'gratuite?s?',
    'offre spéciale',
    'achetez',
    'rabatte?',
    'sonderangebote?',
    'angebote?',
    'kostenlos',
    'jetzt kaufen',
    'schlussverkauf',
    'sconti?',
    'offert[ae]',
    'saldi',
    'acquista ora',
    'diskon',
    'beli sekarang',
    'indirim',
    'kampanya',
    'ücretsiz',
    'छूट',
    'मुफ्त',
    'ऑफर',
    'خصم',
    'عرض',
    'مجانا',
    'تخفيضات',
  ].join('|')})(?![\\p{L}\\p{M}\\p{N}])`,
  'iu',
)

export const nameRules: readonly Rule[] = [
  {
    id: 'name.required',
    severity: 'error',
    about: 'There is a name.',
    find: ({ draft: { name } }) =>
      isBlank(name)
        ? found('name', 'The template has no name.', 'Name it by what it is for, such as "order_update".')
        : fine,
    breaks: { set: { name: ' ' }, at: 'name' },
    passes: { set: { name: 'x' } },
  },
  {
    id: 'name.form',
    severity: 'error',
    about: 'Lowercase letters a to z, digits and underscores.',
    find: ({ draft: { name } }) =>
      isBlank(name) || /^[a-z0-9_]+$/.test(name)
        ? fine
        : found(
            'name',
            `The name ${quote(name)} holds other characters than lowercase letters, digits and underscores.`,
            suggest(nameFrom(name), 'Use a to z, 0 to 9 and _ alone.'),
          ),
    breaks: { set: { name: 'Order Update' }, at: 'name' },
    passes: { set: { name: 'order_update_2' } },
  },
  {
    id: 'name.length',
    severity: 'error',
    about: `At most ${LONGEST_NAME} characters.`,
    find: ({ draft: { name } }) => {
      const over = isBlank(name) ? 0 : excess(name, LONGEST_NAME)
      return over === 0
        ? fine
        : found(
            'name',
            `The name has ${LONGEST_NAME + over} characters; the provider takes ${LONGEST_NAME}.`,
            `Shorten it by ${over}.`,
          )
    },
    breaks: { set: { name: 'x'.repeat(513) }, at: 'name' },
    passes: { set: { name: 'x'.repeat(512) } },
  },
  {
    id: 'language.required',
    severity: 'error',
    about: 'There is a language.',
    find: ({ draft: { language } }) =>
      isBlank(language)
        ? found(
            'language',
            'The template has no language.',
            'Give the code of the language it is written in, such as "en_US".',
          )
        : fine,
    breaks: { set: { language: '' }, at: 'language' },
    passes: { set: { language: 'en' } },
  },
  {
    id: 'language.form',
    severity: 'error',
    about:
      'Two or three lowercase letters, and a country of two capitals after an underscore where one is meant.',
    find: ({ draft: { language } }) =>
      isBlank(language) || HAS_FORM.test(language)
        ? fine
        : found(
            'language',
            `${quote(language)} is not a language code.`,
            suggest(languageFrom(language), 'Write a code such as "en", "en_US" or "pt_BR".'),
          ),
    breaks: { set: { language: 'en-US' }, at: 'language' },
    passes: { set: { language: 'fil' } },
  },
  {
    id: 'language.unknown',
    severity: 'warning',
    about: "The provider's list has the language.",
    find: ({ draft: { language } }) => {
      if (!HAS_FORM.test(language) || languages.includes(language)) return fine
      const general = language.slice(0, language.indexOf('_'))
      const known = languages.includes(general) ? general : (nearest(language, languages) ?? '')
      return found(
        'language',
        `The provider's list of languages has no ${quote(language)}.`,
        suggest(known, "Choose a code from the provider's list of languages."),
      )
    },
    breaks: { set: { language: 'de_BR' }, at: 'language' },
    passes: { set: { language: 'zh_CN' } },
  },
  {
    id: 'category.unknown',
    severity: 'error',
    about: 'The category is `MARKETING`, `UTILITY` or `AUTHENTICATION`.',
    find: ({ draft: { category }, category: taken }) =>
      categories.some((known) => known === category)
        ? fine
        : found(
            'category',
            `${quote(category)} is not a category.`,
            category.trim().toUpperCase() === taken
              ? `Write "${taken}".`
              : 'Write "MARKETING" for advertising, "UTILITY" for news of an order or account, "AUTHENTICATION" for codes.',
          ),
    breaks: { set: { category: 'Service' }, at: 'category' },
    passes: { set: { category: 'MARKETING' } },
  },
  {
    id: 'category.promotional',
    severity: 'warning',
    about: 'A `UTILITY` body does not advertise; the provider would make it `MARKETING`, which costs more.',
    find: ({ draft: { category, body } }) => {
      const word = category === 'UTILITY' ? PROMOTIONAL.exec(body.text ?? '')?.[0] : undefined
      return word === undefined
        ? fine
        : found(
            'category',
            `${quote(word)} in the body advertises, so the provider may make the template MARKETING or reject it.`,
            'Choose MARKETING, or tell of the order or account alone.',
          )
    },
    breaks: { set: { 'body.text': 'Your order came. Get 20% off the next one.' }, at: 'category' },
    passes: { set: { category: 'MARKETING', 'body.text': 'Your order came. Get 20% off the next one.' } },
  },
]
